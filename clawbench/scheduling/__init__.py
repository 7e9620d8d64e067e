"""Which case is run when, how many at once, and which once more."""
