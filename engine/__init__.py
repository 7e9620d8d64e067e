"""What the Docker SDK leaves undone, for every room that talks to the engine. It knows of no other room."""
