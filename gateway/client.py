"""The suite's side of the gateway: `Gateway` starts and ends its process, `GatewayClient` talks to it.

`Gateway` belongs to the controller; workers only need the control socket's path. Both are synchronous.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from common.errors import NotReadyError
from gateway.case_models import CaseCounts, CaseSpec
from gateway.config import GatewayConfig

LOG_NAME = "gateway.log"
START_SECONDS = 120.0
"""A busy machine may take a minute to import everything; a process that takes longer than this hangs."""
STOP_SECONDS = 30.0
CALL_SECONDS = 60.0
LOG_TAIL = 2000
"""How many characters of the log an error shows."""
LONGEST_PATH = 107
"""The kernel's limit for the path of a Unix socket, in bytes."""
_PREFIX = "cbgw-"
_ROOM = len("/control/s")


class GatewayError(NotReadyError, ConnectionError):
    """The gateway did not start, or no longer answers."""


class Gateway:
    """The gateway's process. Also a context manager that stops it."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        """Wrap a process that was started for this folder; use `Gateway.start`."""
        self._process = process
        self._folder = folder

    @classmethod
    def start(
        cls,
        run_dir: Path,
        config: GatewayConfig = GatewayConfig(),  # noqa: B008 - frozen
        folder: Path | None = None,
    ) -> Gateway:
        """Start the process and wait until it answers.

        Args:
            run_dir: gets the process's output as `gateway.log`; created if needed.
            config: what it is to serve besides scripted and replayed models.
            folder: for its sockets, from `short_folder`; None: a fresh one.

        Raises:
            GatewayError: it ended or did not answer in time; the message holds the end of its output.
        """
        run_dir.mkdir(parents=True, exist_ok=True)
        _sweep_folders()
        folder = folder or short_folder()
        # The process must import this package, wherever the controller was started.
        search = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        with (run_dir / LOG_NAME).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "gateway.server", str(folder)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=_environment(config) | {"PYTHONPATH": search.rstrip(os.pathsep)},
                # Ctrl-C goes to the controller, whose cases still need the gateway while they end.
                start_new_session=True,
            )
        gateway = cls(process, folder)
        gateway._tell(config.line())
        if not gateway._answers_in_time():
            gateway.stop()
            tail = (run_dir / LOG_NAME).read_text("utf-8", errors="replace")[-LOG_TAIL:]
            raise GatewayError(f"the gateway did not start (exit code {process.returncode}):\n{tail}")
        return gateway

    @property
    def control(self) -> Path:
        """The control socket, for `GatewayClient`."""
        return control_in(self._folder)

    def _tell(self, line: bytes) -> None:
        if self._process.stdin:
            # if the process has ended already, the error below shows its output
            with suppress(BrokenPipeError):
                self._process.stdin.write(line)
                self._process.stdin.flush()

    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End the process and remove its sockets; may be called again."""
        if self._process.stdin:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        # The process does this itself, unless it was killed.
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers_in_time(self) -> bool:
        deadline = time.monotonic() + START_SECONDS
        while self.alive() and time.monotonic() < deadline:
            if GatewayClient(self.control).answers():
                return True
            time.sleep(0.02)
        return False

    def __enter__(self) -> Gateway:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class GatewayClient:
    """Opens and closes cases over the control socket; each call is one short connection."""

    def __init__(self, control: Path) -> None:
        self._control = control

    def answers(self) -> bool:
        """Whether the gateway answers."""
        try:
            self.cost_limit_reached()
        except GatewayError:
            return False
        return True

    def open_case(self, spec: CaseSpec) -> Path:
        """Serve a case; a case that is open under the same id is closed first.

        Returns:
            The case's socket. It is alone in its folder, which may be mounted into a container.
            The folder has mode 0700: clients must run as the suite's own user.

        Raises:
            ValueError: the model is unknown; the message lists the known ones.
            GatewayError: the gateway is gone.
        """
        return Path(json.loads(self._call("POST", "/open", spec.model_dump_json()))["socket"])

    def counts(self, case_id: str) -> CaseCounts:
        """What was counted so far (raises LookupError for a case that is not open, GatewayError)."""
        return CaseCounts.model_validate_json(self._call("POST", "/counts", case_id))

    def close_case(self, case_id: str) -> CaseCounts:
        """Stop serving a case, end its requests in progress, and return its final counts.

        Raises:
            LookupError: no such case is open.
            GatewayError: the gateway is gone.
        """
        return CaseCounts.model_validate_json(self._call("POST", "/close", case_id))

    def account_refusal(self) -> str:
        """The provider's words, if it last refused the key or the account; "" otherwise (raises GatewayError)."""
        return str(json.loads(self._call("GET", "/account")))

    def cost_limit_reached(self) -> bool:
        """Whether the run's spend limit lets no further request through (raises GatewayError)."""
        return bool(json.loads(self._call("GET", "/limit")))

    def _call(self, method: str, path: str, body: str | None = None) -> str:
        connection = UnixConnection(self._control)
        try:
            connection.request(method, path, body.encode() if body is not None else None)
            response = connection.getresponse()
            text = response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise GatewayError(f"the gateway does not answer at {self._control}: {error!r}") from error
        finally:
            connection.close()
        if response.status == 404:
            raise LookupError(f"{text}: {body}")
        if response.status == 400:
            raise ValueError(text)
        if response.status != 200:
            raise GatewayError(f"the gateway failed (HTTP {response.status}): {text[:LOG_TAIL]}")
        return text


class UnixConnection(http.client.HTTPConnection):
    """HTTP over one of the gateway's sockets."""

    def __init__(self, path: Path, seconds: float = CALL_SECONDS) -> None:
        """Prepare a connection.

        Args:
            path: of the socket.
            seconds: the longest time without a byte.
        """
        super().__init__("localhost", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        """Connect (raises OSError)."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _environment(config: GatewayConfig) -> dict[str, str]:
    """The controller's environment without the provider's key and other credentials that might be sent."""
    secrets = config.upstream.secrets if config.upstream else ()
    passed = {name: value for name, value in os.environ.items() if not any(secret in value for secret in secrets)}
    # an entry of the user's ~/.netrc for the provider's host is not a declared credential
    return passed | {"NETRC": os.devnull}


def _sweep_folders() -> None:
    """Remove the folders of gateways that were killed: nothing listens on their control sockets any more."""
    for control in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/control/s"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(str(control))
            except ConnectionRefusedError:
                shutil.rmtree(control.parents[1], ignore_errors=True)
            except OSError:  # another user's, or one that ended at this moment
                continue


def control_in(folder: Path) -> Path:
    """The control socket of a gateway with this folder, once it has started."""
    return folder / "control" / "s"


def short_folder() -> Path:
    """A fresh folder of mode 0700, with a path short enough for sockets; a gateway removes its own at its end."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    if len(os.fsencode(folder)) + _ROOM <= LONGEST_PATH:
        return folder
    folder.rmdir()
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp"))
