"""zeroclaw: adapter and config."""
