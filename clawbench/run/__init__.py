"""Runs one case: settings, the agent's run, its manifest. Nothing here depends on pytest."""
