"""What every case of a worker shares: the engine, the run directory, the gateway's address."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import docker
from docker.errors import DockerException

from adapters.runtimes import default_home
from clawbench import disk
from clawbench.progress import Progress
from clawbench.scheduling.order import Order
from clawbench.scheduling.retries import Retries
from clawbench.scheduling.slots import Slots
from clawbench.settings import Settings
from gateway.client import GatewayClient
from records.durations import Durations
from records.run import RunDirectory
from workspace.container import Limits
from workspace.errors import WorkspaceError
from workspace.inventory import Inventory
from workspace.pulls import Pulls
from workspace.running import ended_from_within


def connect(timeout: int = 600) -> docker.DockerClient:
    """The Docker engine of the environment.

    Args:
        timeout: seconds that an answer of it may take.

    Raises:
        WorkspaceError: it does not answer; the message says what to do.
    """
    try:
        client = docker.from_env(timeout=timeout)
        client.ping()
    except (DockerException, OSError) as error:
        where = os.environ.get("DOCKER_HOST", "its default socket")
        raise WorkspaceError(
            f"Docker does not answer at {where} ({error}). Start it (`make docker` on Debian and Ubuntu as root), "
            "or let DOCKER_HOST name a running engine."
        ) from error
    return client


class SpendLimitError(RuntimeError):
    """The run's spend limit was reached: the case is run under a higher one."""


class NotBegunError(RuntimeError):
    """There is no money or no room for a case, and it has not begun; the same command goes on with it later."""


@dataclass
class Bench:
    """One process's share of a run."""

    settings: Settings
    worker: str
    control: Path | None
    """The gateway's control socket; None where the gateway is off."""
    tell: Callable[[str], None] | None = None
    """Prints a line for the user, where this process may."""
    order: Order = field(default_factory=Order)
    """In which cases are run."""

    @cached_property
    def run(self) -> RunDirectory:
        """The run directory."""
        return RunDirectory(self.settings.artifacts / self.settings.run_id)

    @property
    def rows(self) -> Path:
        """Where the controller lays out the rows of the real instances."""
        return self.run.path / ".rows"

    @cached_property
    def client(self) -> docker.DockerClient:
        """The engine, connected on first use (raises WorkspaceError)."""
        return connect()

    @cached_property
    def pulls(self) -> Pulls:
        """The way to pull images."""
        return Pulls(self.client, self.home, self.settings.platform)

    @property
    def inventory(self) -> Inventory:
        """Which images are the suite's own."""
        return Inventory(self.client, self.home)

    @cached_property
    def engine(self) -> dict[str, Any]:
        """The engine as manifests name it."""
        info = self.client.info()
        return {
            "version": info["ServerVersion"],
            "storage_driver": info["Driver"],
            "architecture": info["Architecture"],
        }

    @cached_property
    def gateway(self) -> GatewayClient:
        """The run's gateway."""
        if self.control is None:
            raise RuntimeError("the gateway is off, and was asked for")
        return GatewayClient(self.control)

    def require_gateway(self) -> None:
        """See that a case can begin, before its image is made for nothing (raises NotBegunError)."""
        if self.control is not None and not self.gateway.answers():
            raise NotBegunError("not begun: the run's gateway is gone. The same command goes on")

    def require_money(self) -> None:
        """See that a case can begin (raises NotBegunError, and GatewayError where the gateway is gone)."""
        limits = (self.settings.spend_limit, self.settings.case_spend_limit)
        if any(limit is not None for limit in limits) and self.gateway.totals().budget_reached:
            raise NotBegunError(
                "not begun: the run's spend limit is reached. The same command with a higher --spend-limit goes on"
            )

    @cached_property
    def data_root(self) -> Path | None:
        """The engine's folder, where it is on this machine."""
        return disk.data_root(self.client, self.client.info())

    def require_room(self) -> None:
        """See that the disks have room for a case to begin (raises NotBegunError)."""
        missing = disk.shortage(self.settings.disk_reserve, self.data_root, self.settings.artifacts)
        if missing:
            raise NotBegunError(f"not begun: {missing}. The same command goes on")

    @cached_property
    def progress(self) -> Progress:
        """Where this worker tells what it is doing."""
        return Progress(self.run.path, self.worker, self.tell)

    def ended_from_within(self, container_id: str, since: float) -> bool:
        """See `workspace.running.ended_from_within`."""
        return ended_from_within(self.client, container_id, since)

    @cached_property
    def agents(self) -> Slots:
        """The queue of the run's cases for a claw to work."""
        return Slots(self.run.path / ".slots", self.settings.agents)

    @cached_property
    def evaluations(self) -> Slots:
        """The queue of all cases of all runs for this machine's cores."""
        return Slots(self.home / "evaluation-slots", self.settings.eval_slots)

    @property
    def retries(self) -> Retries:
        """Which cases this command ran again."""
        return Retries(self.run.path)

    @property
    def durations(self) -> Durations:
        """How long cases took on this machine with the run's model."""
        return Durations(self.home / "durations", self.settings.model)

    @property
    def home(self) -> Path:
        """Installed claws, and caches that all runs on this machine share."""
        return default_home()

    @property
    def limits(self) -> Limits:
        """Of every workspace."""
        return Limits(self.settings.pids_limit, self.settings.memory)
