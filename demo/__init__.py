"""The embedded task set: ten small repositories in the official task-repo format, and their images."""
