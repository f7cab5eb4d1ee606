"""The laws, each pinned by tests."""
