"""Chains of rules: flat lists, walked by one function per kind."""
