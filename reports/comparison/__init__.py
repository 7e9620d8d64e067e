"""Comparing contenders: claws of one run or of several. Paired by instance, and only where the manifests allow it."""
