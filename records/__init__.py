"""What a run leaves on disk: written before the next step begins, valid at every moment."""
