"""Shows a ledger file in a browser: Datasette, held to reading one file, behind a guard."""
