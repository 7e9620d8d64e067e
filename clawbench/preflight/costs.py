"""What a run will take, before anything is paid: hours, dollars and disk."""

from __future__ import annotations

from clawbench.preflight import engine_checks
from clawbench.preflight.instance_checks import images_of
from clawbench.preflight.machine_checks import EMBEDDED_BYTES, IMAGE_BYTES
from clawbench.preflight.planned_run import PlannedRun
from clawbench.run.disk import shown
from common.errors import known_error
from reports.estimate import estimate, lines


def estimate_lines(run: PlannedRun) -> list[str]:
    """The estimate, for the user; the engine is asked which images are here, if it answers."""
    settings = run.settings
    found = estimate(
        run.cases,
        settings.model,
        settings.artifacts,
        label=settings.agent_label("{claw}"),
        has_price=settings.has_price or run.choice is None,
    )
    return [*lines(found, settings.agents), f"  disk: {_disk(run)}"]


def _disk(run: PlannedRun) -> str:
    _, engine = engine_checks.reach()
    if engine is None:
        return "unknown, as the engine does not answer"
    try:
        images = images_of(run, engine)
    except Exception as error:
        if known_error(error) is None and not isinstance(error, OSError):
            raise
        return f"unknown, as the images could not be listed ({error})"
    finally:
        engine.client.close()
    needed = len(images.missing) * IMAGE_BYTES + len(images.unbuilt) * EMBEDDED_BYTES
    count = len(images.missing) + len(images.unbuilt)
    kept = "" if run.settings.image_policy == "keep" else ", of which --image-policy keeps a part at a time"
    return f"about {shown(needed)} for {count} images that are not here{kept}" if count else "all images are here"
