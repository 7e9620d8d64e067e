"""openclaw: adapter, config, credentials, runtime, session and launcher."""
