"""Questions to a ledger file: each opens it for reading only."""
