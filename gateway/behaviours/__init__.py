"""What the scripted model can be told to do: `base` says what a behaviour is, the others are the behaviours."""
