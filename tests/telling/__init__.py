"""Recorders, told real runs."""
