"""The front door: the pytest plugin and the command line."""
