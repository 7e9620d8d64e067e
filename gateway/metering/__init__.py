"""What a provider's reply says of itself: its tokens, its cost, how it ended. Nothing here opens a connection."""
