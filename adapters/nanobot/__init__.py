"""nanobot: adapter and config."""
