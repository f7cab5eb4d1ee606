"""Kills, disk errors and processes that fight, against the real product."""
