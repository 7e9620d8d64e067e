"""Installs the runtimes of the claws."""
