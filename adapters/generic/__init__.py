"""generic: adapter, config and launcher."""
