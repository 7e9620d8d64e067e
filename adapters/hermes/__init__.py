"""hermes: adapter and config."""
