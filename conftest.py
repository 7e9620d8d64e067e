"""Loads the suite's pytest plugin, and nothing else."""

pytest_plugins = ["clawbench.pytest_plugin"]
