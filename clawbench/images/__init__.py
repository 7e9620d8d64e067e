"""The controller's care for images: pulled ahead of need, and removed when nothing needs them any more."""
