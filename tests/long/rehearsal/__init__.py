"""A whole run without an engine, and what can go wrong around one: nothing of it may be lost, or done twice.

Everything of a run is the real thing but for the engine and what happens in it: `engine` stands in for containers
and images, `claws` for claws, `fates` says how each case is to end. `rows` has the instances' rows, made up.
`command` runs the command that a user would, and looks at its processes; `faults` are thrown at it; `checks` tell
what a run must be after it all. The faults and checks are used on runs with real containers as well.
"""
