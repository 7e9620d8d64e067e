"""The controller's threads that pull the images of coming cases, and remove images that no case needs any longer.

Cases do not depend on them: a case whose image is missing pulls it itself, or waits for the pull that is under way.
An error here is only printed; if it persists, the case reports it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path

import docker

import demo.task_images
from clawbench.controller.image_eviction import ImageEviction
from clawbench.controller.image_schedule import ImageSchedule
from clawbench.run import disk
from clawbench.run.worker_context import WorkerContext, connect
from common.errors import known_error
from evaluation.lists import ListedInstance
from evaluation.rows import read_row
from workspace.instance_images import image_here, name_to_pull, official_names
from workspace.inventory import Inventory, Needs
from workspace.pulls import AT_ONCE, Pulls

_AHEAD = AT_ONCE - 1
"""How many images are pulled in advance at the same time; one more pull is left for a case that needs its image now."""
_LOOK = 15.0
"""Seconds between two checks if no case begins or ends: another run or the user may have freed space."""
_PATIENCE = 60.0
"""Seconds that the end of the run waits for each thread."""


class _StoppedError(Exception):
    """The run is ending."""


class ImageKeeper:
    """Pulls and removes the images of one run."""

    def __init__(
        self,
        context: WorkerContext,
        tests: Mapping[str, ListedInstance],
        finished: Iterable[str],
        *,
        workers: int,
        tell: Callable[[str], None] | None,
    ) -> None:
        """Publish which images this run needs; `start` starts the threads (raises OSError, InstanceError).

        Args:
            context: the controller's.
            tests: the instance of each test id, in run order.
            finished: ids of tests that need no image.
            workers: how many cases run at the same time.
            tell: prints a line for the user from any thread; without it, lines are printed between two cases.
        """
        self._context = context
        self._soon = 2 * workers
        self._direct = tell
        self._lines: deque[str] = deque()
        self._schedule = ImageSchedule(((test, one.instance_id) for test, one in tests.items()), finished)
        listed = {one.instance_id: one for one in tests.values()}
        self._row_images = {
            instance: read_row(context.rows, instance).image
            for instance, found in listed.items()
            if not found.embedded
        }
        self._names = {
            instance: official_names(instance, self._row_images.get(instance))
            if instance in self._row_images
            else [demo.task_images.image_name(instance)]
            for instance in listed
        }
        self._seen: set[str] = set()
        """Instances whose images are here, being pulled, or left to their cases."""
        self._under_way = 0
        self._data_root: Path | None = None
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._needs = Needs(context.home)
        self._told: set[str] = set()
        self._tell_needs()
        self._threads: list[threading.Thread] = []

    @property
    def has_real(self) -> bool:
        """Whether the run has real instances."""
        return bool(self._row_images)

    def start(self) -> None:
        """Start the threads that have something to do."""
        if self.has_real:
            self._data_root = self._context.data_root
            self._threads += [self._thread(self._pull_ahead, f"pull-{number}") for number in range(_AHEAD)]
        if self._context.settings.image_policy != "keep":
            self._threads.append(self._thread(self._keep_house, "housekeeping"))
        for thread in self._threads:
            thread.start()

    def _thread(self, work: Callable[[docker.DockerClient], None], name: str) -> threading.Thread:
        def run() -> None:
            with suppress(_StoppedError), closing(connect()) as client:
                work(client)

        return threading.Thread(target=run, daemon=True, name=name)

    def close(self) -> None:
        """Apply the policy one last time and end the threads; a second call does nothing."""
        if self._stop.is_set():
            return
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(_PATIENCE)
        self._needs.close()
        self._print()

    def case_began(self, test_id: str) -> None:
        """A test began, in any process."""
        if self._schedule.begin(test_id):
            self._happened()

    def case_ended(self, test_id: str) -> None:
        """A test ended."""
        if self._schedule.end(test_id):
            self._happened()

    def _happened(self) -> None:
        self._tell_needs()
        self._print()
        with self._changed:
            self._changed.notify_all()

    def _tell_needs(self) -> None:
        needed = set(self._schedule.needed())
        if needed != self._told:
            self._told = needed
            with suppress(OSError):  # on a full disk the earlier, longer list stays
                self._needs.tell(name for instance in needed for name in self._names[instance])

    def _tell(self, line: str) -> None:
        if self._direct is not None:
            self._direct(f"images: {line}")
        else:
            self._lines.append(f"images: {line}")

    def _print(self) -> None:
        while self._lines and self._context.tell is not None:
            self._context.tell(self._lines.popleft())

    def _wait(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise _StoppedError

    # -- the threads ----------------------------------------------------------------------------------

    def _keep_house(self, client: docker.DockerClient) -> None:
        house = ImageEviction(
            Inventory(client, self._context.home),
            self._context.settings.image_policy,
            instances={name: instance for instance, names in self._names.items() for name in names},
            built=map(demo.task_images.image_name, demo.task_images.embedded_ids()),
            soon=self._soon,
            tell=self._tell,
        )
        last = False
        while not last:
            with self._changed:
                if not self._stop.is_set():
                    self._changed.wait(_LOOK)
            last = self._stop.is_set()
            try:
                gone = house.tidy(self._schedule.needed(), self._needs.of_others())
            except Exception as error:
                if known_error(error) is None and not isinstance(error, OSError):
                    raise
                self._tell(f"unneeded images could not be removed: {error}")
                continue
            with self._changed:
                self._seen -= set(gone)

    def _pull_ahead(self, client: docker.DockerClient) -> None:
        pulls = Pulls(client, self._context.home, self._context.settings.platform, self._wait)
        inventory = Inventory(client, self._context.home)
        while True:
            instance = self._take()
            has_room = True
            try:
                if image_here(pulls, instance, self._row_images[instance]) is None:
                    has_room = self._has_room(inventory)
                    if has_room:
                        name = name_to_pull(instance, self._row_images[instance])
                        pulls.pull(name, lambda line: self._tell(f"ahead: {line}"))
            except Exception as error:
                if known_error(error) is None and not isinstance(error, OSError):
                    raise
                self._tell(
                    f"the image of {instance} could not be pulled in advance; its cases will try again: {error}"
                )
            finally:
                self._give_back(instance, has_room)

    def _take(self) -> str:
        """Wait for the next instance whose image is to be pulled (raises _StoppedError)."""
        with self._changed:
            while (wanted := next((one for one in self._soon_needed() if one not in self._seen), None)) is None:
                self._wait(0)
                self._changed.wait(_LOOK)
            self._seen.add(wanted)
            self._under_way += 1
            return wanted

    def _give_back(self, instance: str, has_room: bool) -> None:
        with self._changed:
            self._under_way -= 1
            if has_room:
                self._changed.notify_all()
            else:
                # wait until a case ends or an image is removed; then another instance may come next
                self._seen.discard(instance)
                self._changed.wait(_LOOK)

    def _soon_needed(self) -> list[str]:
        """The real instances of the next cases, in order."""
        needed = self._schedule.needed()
        soon = [one for one, place in needed.items() if place < self._soon and one in self._row_images]
        return sorted(soon, key=lambda one: needed[one])

    def _has_room(self, inventory: Inventory) -> bool:
        """Whether one more image, if it is as large as the largest so far, fits the limit and the disk reserve."""
        settings = self._context.settings
        images = inventory.images()
        largest = max((inventory.size([image]) for image in images), default=0)
        coming = largest * max(1, self._under_way)
        if isinstance(settings.image_policy, int) and inventory.size(images) + coming > settings.image_policy:
            return False
        return disk.shortage(settings.disk_reserve + coming, self._data_root, settings.artifacts) is None
