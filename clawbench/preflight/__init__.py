"""Checks before a run: `clawbench doctor`, `clawbench gold`, and those of the embedded tasks."""
