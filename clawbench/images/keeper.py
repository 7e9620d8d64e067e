"""The controller's threads that pull the images of cases to come, and remove those that none needs any more.

Cases do not depend on it: a case that comes to its image before it is here pulls it itself, or waits for the pull
that is under way. What goes wrong here is told, and left to the case.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path

import docker
import pytest
from docker.errors import DockerException
from requests.exceptions import RequestException

import demo.images
from clawbench import disk
from clawbench.bench import Bench, connect
from clawbench.images.housekeeping import Housekeeping
from clawbench.images.upcoming import Upcoming
from engine.pulling import PullError
from evaluation.lists import ListedInstance
from evaluation.rows import read_row
from workspace.errors import WorkspaceError
from workspace.images import image_here, name_to_pull, official_names
from workspace.inventory import Inventory
from workspace.needs import Needs
from workspace.pulls import AT_ONCE, Pulls

_AHEAD = AT_ONCE - 1
"""Pulls ahead at once: one is left for a case that can't wait."""
_LOOK = 15.0
"""Seconds between two looks where nothing has happened: another run, or the user, may have made room."""
_PATIENCE = 60.0
"""Seconds that the end of the run waits for the threads."""
_BROKEN = (WorkspaceError, PullError, DockerException, RequestException, OSError)


class _StoppedError(Exception):
    """The run ends."""


class ImageKeeper:
    """Cares for the images of one run, from its selection to its end."""

    def __init__(
        self,
        bench: Bench,
        tests: Mapping[str, ListedInstance],
        finished: Iterable[str],
        *,
        workers: int,
        tell: Callable[[str], None] | None,
    ) -> None:
        """Say which images the run needs; `start` does the rest (raises OSError, InstanceError).

        Args:
            bench: the controller's.
            tests: the instance of each test id, in the order in which they are run.
            finished: ids of those that need no image.
            workers: how many cases are run at once.
            tell: prints a line for the user from any thread; None: only between two cases, from their thread.
        """
        self._bench = bench
        self._soon = 2 * workers
        self._direct = tell
        self._lines: deque[str] = deque()
        self._upcoming = Upcoming(((test, one.instance_id) for test, one in tests.items()), finished)
        listed = {one.instance_id: one for one in tests.values()}
        self._row_images = {
            instance: read_row(bench.rows, instance).image
            for instance, found in listed.items()
            if not found.embedded
        }
        self._names = {
            instance: official_names(instance, self._row_images.get(instance))
            if instance in self._row_images
            else [demo.images.image_name(instance)]
            for instance in listed
        }
        self._seen: set[str] = set()
        """Instances whose images are here, on their way, or left to their cases."""
        self._under_way = 0
        self._data_root: Path | None = None
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._needs = Needs(bench.home)
        self._told: set[str] = set()
        self._tell_needs()
        self._threads: list[threading.Thread] = []

    @property
    def has_real(self) -> bool:
        """Whether there are other instances than embedded tasks."""
        return bool(self._row_images)

    def start(self) -> None:
        """Begin to pull ahead and to remove, where there is anything to do."""
        if self.has_real:
            self._data_root = self._bench.data_root
            self._threads += [self._thread(self._pull_ahead, f"pull-{number}") for number in range(_AHEAD)]
        if self._bench.settings.image_policy != "keep":
            self._threads.append(self._thread(self._keep_house, "housekeeping"))
        for thread in self._threads:
            thread.start()

    def _thread(self, work: Callable[[docker.DockerClient], None], name: str) -> threading.Thread:
        def run() -> None:
            with suppress(_StoppedError), closing(connect()) as client:
                work(client)

        return threading.Thread(target=run, daemon=True, name=name)

    def close(self) -> None:
        """End, and remove once more what the policy says; a second call does nothing."""
        if self._stop.is_set():
            return
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(_PATIENCE)
        self._needs.close()
        self._print()

    # -- what pytest tells ----------------------------------------------------------------------------

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins, in whichever process."""
        if self._upcoming.begin(nodeid):
            self._happened()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A test has ended."""
        if self._upcoming.end(nodeid):
            self._happened()

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str) -> None:
        """A worker died at a test, and it is not run again: that is its end, and no other is told."""
        self.pytest_runtest_logfinish(crashitem)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """All tests have ended, or none is begun any more."""
        self.close()

    def _happened(self) -> None:
        self._tell_needs()
        self._print()
        with self._changed:
            self._changed.notify_all()

    def _tell_needs(self) -> None:
        needed = set(self._upcoming.needed())
        if needed != self._told:
            self._told = needed
            with suppress(OSError):  # a full disk: what was told before is more than enough
                self._needs.tell(name for instance in needed for name in self._names[instance])

    def _tell(self, line: str) -> None:
        if self._direct is not None:
            self._direct(f"images: {line}")
        else:
            self._lines.append(f"images: {line}")

    def _print(self) -> None:
        while self._lines and self._bench.tell is not None:
            self._bench.tell(self._lines.popleft())

    def _wait(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise _StoppedError

    # -- the threads ----------------------------------------------------------------------------------

    def _keep_house(self, client: docker.DockerClient) -> None:
        house = Housekeeping(
            Inventory(client, self._bench.home),
            self._bench.settings.image_policy,
            instances={name: instance for instance, names in self._names.items() for name in names},
            built=map(demo.images.image_name, demo.images.embedded_ids()),
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
                gone = house.tidy(self._upcoming.needed(), self._needs.of_others())
            except _BROKEN as error:
                self._tell(f"could not be tidied: {error}")
                continue
            with self._changed:
                self._seen -= set(gone)

    def _pull_ahead(self, client: docker.DockerClient) -> None:
        pulls = Pulls(client, self._bench.home, self._bench.settings.platform, self._wait)
        inventory = Inventory(client, self._bench.home)
        while True:
            instance = self._take()
            has_room = True
            try:
                if image_here(pulls, instance, self._row_images[instance]) is None:
                    has_room = self._has_room(inventory)
                    if has_room:
                        name = name_to_pull(instance, self._row_images[instance])
                        pulls.pull(name, lambda line: self._tell(f"ahead: {line}"))
            except _BROKEN as error:
                self._tell(f"that of {instance} could not be pulled ahead, and is left to its cases: {error}")
            finally:
                self._give_back(instance, has_room)

    def _take(self) -> str:
        """The next instance that nobody has looked at, once there is one (raises _StoppedError)."""
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
                # until something has ended or gone; by then another one may be next
                self._seen.discard(instance)
                self._changed.wait(_LOOK)

    def _soon_needed(self) -> list[str]:
        """The instances of the next cases, in their order."""
        needed = self._upcoming.needed()
        soon = [one for one, place in needed.items() if place < self._soon and one in self._row_images]
        return sorted(soon, key=lambda one: needed[one])

    def _has_room(self, inventory: Inventory) -> bool:
        """Whether one more image, as large as the largest so far, breaks neither budget nor reserve."""
        settings = self._bench.settings
        images = inventory.images()
        largest = max((inventory.size([image]) for image in images), default=0)
        coming = largest * max(1, self._under_way)
        if isinstance(settings.image_policy, int) and inventory.size(images) + coming > settings.image_policy:
            return False
        return disk.shortage(settings.disk_reserve + coming, self._data_root, settings.artifacts) is None
