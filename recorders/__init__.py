"""A recorder is told what happened; it cannot change it."""
