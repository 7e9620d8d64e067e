"""The claws: a protocol, a registry by name, and one package per claw."""
