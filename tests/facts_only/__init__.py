"""Nothing anybody said is in what a recorder exported: swept over every recorder, door and place."""
