"""Whether a run is what it says: every file against the manifest and the journal.

The journal vouches for the manifest, the plan, and each case's `metadata.json`, by their digests, in lines that
are chained; `metadata.json` vouches for `files.json`, and that for every other file of the case. On top of that,
what is told twice must be the same, and what follows from something else must follow.
"""

from clawbench.verification.findings import Fault, Verification
from clawbench.verification.run import verify_run

__all__ = ["Fault", "Verification", "verify_run"]
