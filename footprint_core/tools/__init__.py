"""Tools: typed functions, what they are handed, and how their arguments are checked."""
