"""What `--image-policy` removes: images of ours that no coming case needs, those needed latest first.

Whatever is at work or about to be, and whatever another live run needs, stays, even where that is more than the
budget: a run that takes its own images away from under its cases would get nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby

from clawbench.disk import shown
from workspace.inventory import Inventory, OwnImage

_NEVER = 1 << 30
"""A place in the order of cases behind all others."""


class Housekeeping:
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
        """Nothing is removed yet.

        Args:
            inventory: of the engine.
            policy: `keep`, `prune`, or a budget in bytes.
            instances: of the run, by every name that an instance's image may have.
            built: names of images that the suite builds itself, for all runs: only a budget removes them.
            soon: an instance that is needed within so many cases is as good as at work.
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
        """Remove what the policy says.

        Args:
            needed: when each instance of the run is needed next, see `Upcoming.needed`.
            of_others: names of images that other runs need.

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
            # among those that are needed equally late, what can be built here costs least to have again
            spare.sort(key=lambda source: (when[source], source in self._built), reverse=True)
            return self._keep_to(self._policy, groups, spare)
        return [
            self._instances[source]
            for source in spare
            if when[source] == _NEVER and source in self._instances and source not in self._built
            if self._remove(groups[source], "no case to come needs it")
        ]

    def _keep_to(self, budget: int, groups: dict[str, list[OwnImage]], spare: list[str]) -> list[str]:
        gone: list[str] = []
        left = dict(groups)
        while (size := self._inventory.size(image for found in left.values() for image in found)) > budget:
            if not spare:
                if not self._told_full:
                    self._tell(
                        f"images take {shown(size)} of {shown(budget)}: what is there is in use, or needed soon"
                    )
                self._told_full = True
                return gone
            source = spare.pop(0)
            if self._remove(groups[source], f"images take {shown(size)} of {shown(budget)}"):
                del left[source]
                gone += [self._instances[source]] if source in self._instances else []
        self._told_full = False
        return gone

    def _remove(self, images: list[OwnImage], why: str) -> bool:
        """Remove an instance's images, what was made of another first; whether all are gone."""
        for image in sorted(images, key=lambda image: image.is_source):
            if not self._inventory.remove(image):
                return False
        self._tell(f"removed the image {images[0].source} and what was made of it: {why}")
        return True
