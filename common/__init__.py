"""Used by all other packages and using none of them: the root of errors, and what the Docker SDK lacks."""
