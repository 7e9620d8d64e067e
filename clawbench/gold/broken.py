"""What runs are told of instances whose environment is broken on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from docker.errors import APIError, DockerException

import demo.images
from clawbench.attribution import architecture_of
from clawbench.bench import Bench
from clawbench.case import Case
from clawbench.gold.marks import Environment, Mark, Marks
from clawbench.names import CaseName
from evaluation.harness import EvaluationError
from evaluation.instances import InstanceError
from workspace.errors import WorkspaceError
from workspace.images import official_names
from workspace.prepare import recipe_digest


def broken(bench: Bench, cases: Iterable[CaseName]) -> dict[str, Mark]:
    """The instances of cases that are known to be broken, each with what is known of it.

    An image that is not here may come to be the one that was judged, so the newest mark counts then; each case's
    own manifest tells of its very image.

    Args:
        bench: of the controller.
        cases: those that are selected, whose rows are taken.
    """
    known = Marks(bench.home).all()
    named = {name.listed.instance_id: name for name in cases if name.listed.instance_id in known}
    if not named:
        return {}
    found = {instance_id: _latest(Case(bench, name), known[instance_id]) for instance_id, name in named.items()}
    return {name: mark for name, mark in found.items() if mark is not None and mark.judged.problems}


def _latest(case: Case, marks: Iterable[Mark]) -> Mark | None:
    try:
        same = {
            "row_sha256": case.instance.digest,
            "preparation": recipe_digest(),
            "harness": case.harness,
            "architecture": architecture_of(case),
        }
        image = _image_id(case)
    except (InstanceError, EvaluationError, WorkspaceError, DockerException, OSError):
        return None  # whatever it is, the case will tell it
    fitting = [mark for mark in marks if _fits(mark.environment, same, image)]
    return fitting[-1] if fitting else None


def _fits(environment: Environment, same: Mapping[str, str], image: str | None) -> bool:
    alike = all(getattr(environment, name) == value for name, value in same.items())
    return alike and image in (None, environment.source_image)


def _image_id(case: Case) -> str | None:
    """The id of a case's image, None where it is not here."""
    names = official_names(case.listed.instance_id, None if case.listed.embedded else case.instance.image)
    for name in [demo.images.image_name(case.listed.instance_id)] if case.listed.embedded else names:
        try:
            return str(case.bench.client.images.get(name).id)
        except APIError:  # not here, or no name that an image could have
            continue
    return None
