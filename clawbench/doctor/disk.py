"""Whether the engine's disk has room for the images that are not here yet, and for the containers at work."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from clawbench.doctor.asked import Asked
from clawbench.doctor.engine import Engine
from clawbench.doctor.findings import Finding, fault, ok, size, warning

IMAGE_BYTES = 2.5e9
"""Of an official image, which are 1 to 3 GB, with what is prepared of it."""
EMBEDDED_BYTES = 0.4e9
"""Of an embedded task's."""
CONTAINER_BYTES = 0.5e9
"""What a container writes: a build, a test run."""


def room(asked: Asked, engine: Engine, *, missing: int, missing_embedded: int) -> Iterator[Finding]:
    """Compare what is free with what would be needed.

    Args:
        asked: the run that is meant.
        engine: its engine.
        missing: how many images of real instances are not here.
        missing_embedded: the same of embedded tasks.
    """
    if engine.root is None:
        yield warning(
            "engine's disk",
            f"{engine.info.get('DockerRootDir')} can't be seen from here",
            f"see that it has {size(_needed(asked, missing, missing_embedded))} free",
        )
        return
    free = shutil.disk_usage(engine.root).free
    needed = _needed(asked, missing, missing_embedded)
    at_once = _needed(asked, min(missing, asked.workers), min(missing_embedded, asked.workers))
    to_come = missing + missing_embedded
    found = f"{size(free)} free in {engine.root}, about {size(needed)} needed with {to_come} images to come"
    least = max(at_once, float(asked.settings.disk_reserve))  # below the reserve no case begins
    if free < least:
        yield fault("engine's disk", found, f"free {size(least - free)} at the least (docker system df)")
    elif free < needed and asked.settings.image_policy == "keep":
        yield warning("engine's disk", found, "free some, select less at a time, or see --image-policy")
    else:
        kept = "" if asked.settings.image_policy == "keep" else ", of which --image-policy keeps a part at a time"
        yield ok("engine's disk", found + kept)


def _needed(asked: Asked, missing: int, missing_embedded: int) -> float:
    return missing * IMAGE_BYTES + missing_embedded * EMBEDDED_BYTES + asked.workers * CONTAINER_BYTES
