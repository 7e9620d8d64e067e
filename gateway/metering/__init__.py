"""Reads from a provider's reply its tokens, its cost and how it ended. Nothing here opens a connection."""
