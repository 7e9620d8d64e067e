"""The claws: a protocol, a registry by name, one file per claw."""
