"""Whether an instance's environment is sound on this machine, by the gold patch and by none at all.

`judging` has the two judged, `marks` keeps what came of it for all runs of this machine, `check` does both for an
instance as a case does it, and `plugin` makes pytest cases of that and tells runs of instances that are broken.
"""
