"""The agent that `footprint demo` runs, and the README explains."""
