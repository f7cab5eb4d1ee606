"""The SQLite store of the ledger: one file that is only ever appended to."""
