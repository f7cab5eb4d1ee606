"""Metrics against what happened: the ledger of the same runs, the wire, and the page Prometheus fetches."""
