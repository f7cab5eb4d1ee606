"""Pauses: what a person is shown, what they answer, and the checkpoint that carries a run across."""
