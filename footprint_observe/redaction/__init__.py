"""Redaction: what is removed from values when they are written, before anything is hashed."""
