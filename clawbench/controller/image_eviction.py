"""What `--image-policy` removes: the suite's own images, those whose next use is furthest away first.

Images of running cases, of the next cases, and of other live runs are kept even above the limit: if they were removed,
they would only be pulled again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby

from clawbench.run.disk import shown
from workspace.inventory import Inventory, OwnImage

_NEVER = 1 << 30
"""The next use of an image that no coming case needs: after all cases."""


class ImageEviction:
    """Applies a policy to the images of one engine."""

    def __init__(
        self,
        inventory: Inventory,
        policy: str | int,
        *,
        instances: Mapping[str, str],
        built: Iterable[str],
        soon: int,
        tell: Callable[[str], None],
    ) -> None:
        """Remove nothing yet.

        Args:
            inventory: the suite's images on the engine.
            policy: `keep`, `prune`, or the bytes that images may take.
            instances: the run's instances, by every name that their images may have.
            built: names of images that the suite builds itself, for all runs; only a limit in bytes removes them.
            soon: instances that are needed within this many cases are kept.
            tell: prints a line for the user.
        """
        self._inventory = inventory
        self._policy = policy
        self._instances = instances
        self._built = frozenset(built)
        self._soon = soon
        self._tell = tell
        self._told_full = False

    def tidy(self, needed: Mapping[str, int], of_others: frozenset[str]) -> list[str]:
        """Apply the policy.

        Args:
            needed: when each instance of the run is needed next, see `ImageSchedule.needed`.
            of_others: the names of images that other runs need.

        Returns:
            the instances of the run whose images are gone.
        """
        if self._policy == "keep":
            return []
        images = sorted(self._inventory.images(), key=lambda image: image.source)
        groups = {source: list(found) for source, found in groupby(images, key=lambda image: image.source)}
        when = {source: needed.get(self._instances.get(source, ""), _NEVER) for source in groups}
        spare = [source for source in groups if when[source] >= self._soon and source not in of_others]
        if isinstance(self._policy, int):
            # of images with the same next use, those that can be built here are cheapest to restore
            spare.sort(key=lambda source: (when[source], source in self._built), reverse=True)
            return self._keep_to(self._policy, groups, spare)
        return [
            self._instances[source]
            for source in spare
            if when[source] == _NEVER and source in self._instances and source not in self._built
            if self._remove(groups[source], "no coming case needs it")
        ]

    def _keep_to(self, limit: int, groups: dict[str, list[OwnImage]], spare: list[str]) -> list[str]:
        gone: list[str] = []
        left = dict(groups)
        while (size := self._inventory.size(image for found in left.values() for image in found)) > limit:
            if not spare:
                if not self._told_full:
                    self._tell(
                        f"images take {shown(size)} of {shown(limit)}: all of them are in use or needed soon"
                    )
                self._told_full = True
                return gone
            source = spare.pop(0)
            if self._remove(groups[source], f"images take {shown(size)} of {shown(limit)}"):
                del left[source]
                gone += [self._instances[source]] if source in self._instances else []
        self._told_full = False
        return gone

    def _remove(self, images: list[OwnImage], why: str) -> bool:
        """Remove an instance's images, derived ones first; returns whether all are gone."""
        for image in sorted(images, key=lambda image: image.is_source):
            if not self._inventory.remove(image):
                return False
        self._tell(f"removed the image {images[0].source} and those made from it: {why}")
        return True
