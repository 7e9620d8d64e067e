"""What the scripted model can do: `base` defines what a behaviour is, the other modules hold the behaviours."""
