"""Scenarios told in JSON, played on a real agent and compared with what is expected of it."""
