"""How each claw's runtime is made: one module per claw, named as the claw, with an `INSTALLER` in it."""
