"""Metrics against what really happened: the ledger of the same runs, the wire, and the page Prometheus fetches."""
