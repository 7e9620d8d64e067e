"""What all cases of one worker process share: settings, the engine, the run's folder, the gateway's address."""

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
from clawbench.run import disk
from clawbench.run.order import Order
from clawbench.run.retries import Retries
from clawbench.run.settings import Settings
from clawbench.run.slots import Slots
from common.errors import ClawbenchError, NotBegunError
from gateway.client import GatewayClient
from records.durations import Durations
from records.progress import Progress
from records.run_folder import RunDirectory
from workspace.container import Limits
from workspace.inventory import Inventory
from workspace.pulls import Pulls
from workspace.running import ended_from_within
from workspace.workspace_errors import WorkspaceError

OUTAGE = ".outage"
"""A run's file that says that an outage has lasted too long."""
_PATIENCE = 30
"""Seconds after which a silent engine counts as gone."""


def connect(timeout: int = 600) -> docker.DockerClient:
    """The Docker engine of the environment.

    Args:
        timeout: seconds to wait for each reply of the engine.

    Raises:
        NoEngineError: it does not answer; the message says why and what to do.
    """
    try:
        client = docker.from_env(timeout=timeout)
        client.ping()
    except (DockerException, OSError) as error:
        raise NoEngineError(error) from error
    return client


class NoEngineError(WorkspaceError):
    """The engine can't be reached."""

    def __init__(self, error: Exception) -> None:
        """Find out why.

        Args:
            error: the SDK's, raised while another one was handled. The first one is the system's own.
        """
        where = os.environ.get("DOCKER_HOST", "its default socket")
        cause: BaseException = error
        while (earlier := cause.__cause__ or cause.__context__) is not None:
            cause = earlier
        self.why = (cause.strerror if isinstance(cause, OSError) else None) or str(error)
        self.to_do = (
            "start it (`make docker` on Debian and Ubuntu as root), or set DOCKER_HOST to a running engine"
        )
        if isinstance(cause, PermissionError):
            self.why = f"this user may not use it ({self.why})"
            self.to_do = (
                "join the engine's group (`sudo usermod -aG docker $USER`, then log in again), or set DOCKER_HOST to an "
                "engine that you may use"
            )
        elif "paramiko" in str(error):
            self.why = "the package paramiko is missing"
            self.to_do = "install paramiko into .venv, or set DOCKER_HOST to an engine that is reached without ssh"
        elif not isinstance(cause, OSError):
            self.to_do = "set DOCKER_HOST to an address of a running engine, such as unix:///var/run/docker.sock"
        super().__init__(f"Docker does not answer at {where}: {self.why}. To do: {self.to_do}")


class SpendLimitError(ClawbenchError):
    """The run's spend limit was reached while the claw worked; the case is run again under a higher limit."""

    outcome = "run_cost_limit"


@dataclass
class WorkerContext:
    """What all cases of one process share."""

    settings: Settings
    worker: str
    """The worker's name; `main` without workers."""
    control: Path | None
    """The gateway's control socket; None without a gateway."""
    tell: Callable[[str], None] | None = None
    """Prints a line for the user; None if this process must not print."""
    order: Order = field(default_factory=Order)
    """The order in which cases are run."""

    @cached_property
    def run(self) -> RunDirectory:
        """The run's folder."""
        return RunDirectory(self.settings.artifacts / self.settings.run_id)

    @property
    def rows(self) -> Path:
        """The folder into which the controller puts the rows of the real instances."""
        return self.run.path / ".rows"

    @cached_property
    def client(self) -> docker.DockerClient:
        """The engine, connected on first use (raises WorkspaceError)."""
        return connect()

    @cached_property
    def pulls(self) -> Pulls:
        """Pulls images, each of them only once for all processes."""
        return Pulls(self.client, self.home, self.settings.platform)

    @property
    def inventory(self) -> Inventory:
        """The images that the suite itself pulled or built."""
        return Inventory(self.client, self.home)

    def engine_fault(self) -> str:
        """Why the engine does not answer; "" if it does."""
        try:
            connect(timeout=_PATIENCE).close()
        except NoEngineError as error:
            return error.why
        return ""

    @property
    def outage_mark(self) -> Path:
        """A file with the reason, once an outage has lasted too long in this command."""
        return self.run.path / OUTAGE

    def require_no_outage(self) -> None:
        """Check that no outage has ended this command (raises NotBegunError)."""
        if self.outage_mark.exists():
            raise NotBegunError(f"not begun: {self.outage_mark.read_text()}. Run the same command again to resume")

    @cached_property
    def engine(self) -> dict[str, Any]:
        """The engine as it appears in manifests."""
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
            raise RuntimeError("the run has no gateway")
        return GatewayClient(self.control)

    def require_gateway(self) -> None:
        """Check that the gateway answers, so that no image is prepared for nothing (raises NotBegunError)."""
        if self.control is not None and not self.gateway.answers():
            raise NotBegunError("not begun: the run's gateway is gone. Run the same command again to resume")

    def require_account(self) -> None:
        """Check that the provider did not refuse the account when it was last asked.

        Raises:
            NotBegunError: it did.
            GatewayError: the gateway is gone.
        """
        refusal = self.gateway.account_refusal() if self.control is not None else ""
        if refusal:
            raise NotBegunError(
                f"not begun: the provider refuses the key or the account ({' '.join(refusal.split())}). Settle that, and "
                "run the same command again to resume"
            )

    def require_money(self) -> None:
        """Check that the run's spend limit is not reached (raises NotBegunError; GatewayError if the gateway is gone)."""
        limits = (self.settings.spend_limit, self.settings.case_spend_limit)
        if any(limit is not None for limit in limits) and self.gateway.cost_limit_reached():
            raise NotBegunError(
                "not begun: the run's spend limit is reached. The same command with a higher --spend-limit resumes"
            )

    @cached_property
    def data_root(self) -> Path | None:
        """The engine's folder, if it is on this machine."""
        return disk.data_root(self.client, self.client.info())

    def require_room(self) -> None:
        """Check that the disks have room for one more case (raises NotBegunError)."""
        missing = disk.shortage(self.settings.disk_reserve, self.data_root, self.settings.artifacts)
        if missing:
            raise NotBegunError(f"not begun: {missing}. Run the same command again to resume")

    @cached_property
    def progress(self) -> Progress:
        """Publishes what this worker is doing."""
        return Progress(self.run.path, self.worker)

    def ended_from_within(self, container_id: str, since: float) -> bool:
        """See `workspace.running.ended_from_within`."""
        return ended_from_within(self.client, container_id, since)

    @cached_property
    def agents(self) -> Slots:
        """The run's slots for agents."""
        return Slots(self.run.path / ".slots", self.settings.agents)

    @cached_property
    def evaluations(self) -> Slots:
        """The machine's slots for evaluations, shared by all runs."""
        return Slots(self.home / "evaluation-slots", self.settings.eval_slots)

    @property
    def retries(self) -> Retries:
        """How often this command has run each case again."""
        return Retries(self.run.path)

    @property
    def durations(self) -> Durations:
        """How long cases took on this machine with the run's model."""
        return Durations(self.home / "durations", self.settings.model)

    @property
    def home(self) -> Path:
        """The folder of installed claws and of caches that all runs on this machine share."""
        return default_home()

    @property
    def limits(self) -> Limits:
        """The limits of every workspace."""
        return Limits(self.settings.pids_limit, self.settings.memory)
