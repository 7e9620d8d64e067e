"""What stands in for the engine: images that are always there, workspaces that are dictionaries, a judge.

Each has the signature of what it stands in for. What a claw's program does in such a workspace is real as far as
it leaves it: it asks the model over the case's socket. What breaks at random breaks as the engine does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from docker.errors import APIError

from adapters.base import STATE_DIR
from evaluation.instances import Instance
from evaluation.outcomes import Ending, Verdict
from gateway.client import UnixConnection
from tests.long.rehearsal.fates import fate_of, patch_of, verdict_in
from tests.long.rehearsal.ledger import Ledger
from tests.long.rehearsal.rehearsed_claws import PROGRAM, TOOL
from workspace.container import Keep
from workspace.export import Export
from workspace.owner import CASE
from workspace.prepare import PreparedImage, Proof
from workspace.running import Result, Workspace
from workspace.start_tree import StartTree
from workspace.workspace_errors import WorkspaceError

_COMMIT = "c" * 40


class Engine:
    """The rehearsed engine: what a run needs of a Docker client beside containers, and what there is to break."""

    def __init__(self, ledger: Ledger, seed: int, breaks: float) -> None:
        """Stand in for a client.

        Args:
            ledger: counts the attempts of claws and judges.
            seed: of what breaks.
            breaks: the part of all first and second attempts that the engine breaks off, for claws and judges.
        """
        self.ledger = ledger
        self._seed = seed
        self._breaks = breaks
        self.images = self.containers = self.api = _Nothing()

    def info(self) -> dict[str, str]:
        """What manifests have of it."""
        return {"ServerVersion": "rehearsed", "Driver": "none", "Architecture": "none"}

    def close(self) -> None:
        """Nothing is open."""

    def breaks_off(self, kind: str, case_id: str) -> bool:
        """Whether this attempt at a case is one that breaks."""
        attempt = self.ledger.attempt(kind, case_id)
        digest = sha256(f"{self._seed} {kind} {case_id} {attempt}".encode()).digest()
        return attempt <= 2 and int.from_bytes(digest[:4], "big") / 2**32 < self._breaks

    # -- images -----------------------------------------------------------------------------------------

    def find_image(self, _pulls: object, instance_id: str, image: str | None, *_: object) -> str:
        """The name of an instance's image: each is there."""
        return image or instance_id

    image_here = find_image

    def described(self, _client: object, name: str) -> dict[str, str]:
        """What manifests have of an image."""
        return {"name": name, "id": "sha256:0"}

    def prepare(self, _client: object, source: str, *, instance_id: str, **_: object) -> PreparedImage:
        """The prepared image of a source image: each is there."""
        proof = Proof(_COMMIT, 1, 1, "d" * 64)
        return PreparedImage(f"prepared/{instance_id}", "sha256:1", "evaluation", source, "sha256:0", proof)

    # -- workspaces -------------------------------------------------------------------------------------

    @contextmanager
    def open_workspace(
        self, _client: object, _: PreparedImage, *, labels: Mapping[str, str], gateway_socket: Path, **__: Keep
    ) -> Iterator[Workspace]:
        """A workspace that has nothing in it but what is put there."""
        case_id = labels[CASE]
        if self.breaks_off("workspace", case_id):
            raise WorkspaceError("the engine could not create a container: it is rehearsed")
        yield RehearsedWorkspace(self, case_id, gateway_socket)

    def export(
        self, container: object, _start: StartTree, *, agent_files: Sequence[str], save_agent_files_to: Path
    ) -> Export:
        """The patch that the claw's program left."""
        patch = str(container)
        save_agent_files_to.mkdir(parents=True, exist_ok=True)
        saved = tuple(f"{name.strip('/')}/state" for name in agent_files)
        for name in saved:
            (save_agent_files_to / name).parent.mkdir(parents=True, exist_ok=True)
            (save_agent_files_to / name).write_text("of no use\n")
        return Export(patch, patch, (), saved, int(bool(patch)), "1" * 40, "2" * 40, "2" * 40, 0.0)

    # -- the judge --------------------------------------------------------------------------------------

    def run_harness(
        self,
        instance: Instance,
        prediction: Mapping[str, str],
        *_: object,
        run_id: str,
        scratch: Path,
        **__: object,
    ) -> None:
        """Leave the logs that the official harness leaves; none that tell a verdict where it breaks off."""
        patch = prediction["model_patch"]
        case_id = patch.split("\n")[1].removeprefix("+++ b/").removesuffix(".txt")
        if patch != patch_of(case_id):
            raise ValueError(f"the judge was given another patch than {case_id} left")
        folder = scratch / "logs" / "run_evaluation" / run_id / "model" / instance.instance_id
        folder.mkdir(parents=True)
        log = folder / "run_instance.log"
        if self.breaks_off("judge", case_id):
            log.write_text("2026 - ERROR - the engine broke off: it is rehearsed\n")
        elif (verdict := verdict_in(patch)) is Verdict.APPLY_FAILED:
            log.write_text(f"swebench.EvaluationError: {instance.instance_id} >>>>> Patch Apply Failed:\nno\n")
        else:
            log.write_text(f"Eval script for {instance.instance_id} written\nGit diff after:\n")
            (folder / "test_output.txt").write_text(">>>>> Start Test Output\n>>>>> End Test Output\n")
            (folder / "report.json").write_text(json.dumps({instance.instance_id: _report(instance, verdict)}))


def _report(instance: Instance, verdict: Verdict) -> dict[str, Any]:
    """As the harness writes it."""
    is_resolved = verdict is Verdict.RESOLVED
    failed = [] if is_resolved else instance.FAIL_TO_PASS
    return {
        "patch_successfully_applied": True,
        "resolved": is_resolved,
        "tests_status": {"FAIL_TO_PASS": {"failure": failed}, "PASS_TO_PASS": {"failure": []}},
    }


class _Nothing:
    """The engine's containers, images and calls: there are none."""

    def images(self, *_: object, **__: object) -> list[object]:
        return []

    def list(self, *_: object, **__: object) -> list[object]:
        return []


class RehearsedTree(StartTree):
    """The start commit's tree, which nobody reads."""

    @classmethod
    def of(cls, *_: object, cache: Path, **__: object) -> StartTree:
        """Name it."""
        return cls(cache)


class RehearsedWorkspace(Workspace):
    """A workspace: files by name, and one program."""

    def __init__(self, engine: Engine, case_id: str, gateway_socket: Path) -> None:
        """Begin with no file."""
        super().__init__(container="")  # type: ignore[arg-type] # what is exported from: the program's patch
        self._engine = engine
        self._case_id = case_id
        self._socket = gateway_socket
        self._files: dict[str, bytes] = {}

    def run(
        self,
        command: Sequence[str],
        *,
        timeout: float,
        environment: Mapping[str, str] | None = None,
        workdir: str | None = None,
        logs: tuple[Path, Path] | None = None,
        extra: Callable[[], float] = lambda: 0.0,
    ) -> Result:
        """Be the claw's program: ask the model until it calls no tool, or until the case's fate comes earlier."""
        del environment, workdir, extra
        if command[0] != PROGRAM:
            raise WorkspaceError(f"{command[0]} can't be run: it is rehearsed")
        fate = fate_of(self._case_id)
        turns = self._talk(command[1], 1 if fate.ending is not Ending.FINISHED else None)
        if self._engine.breaks_off("claw", self._case_id):
            raise APIError("the engine broke off: it is rehearsed")
        # who has no model changes nothing: a verdict on that is not the one that the case must have
        self.container = patch_of(self._case_id) if turns else ""  # type: ignore[assignment]
        stdout = f"{turns} turns\n".encode()
        for path, data in zip(logs or (), (stdout, b"nothing\n"), strict=False):
            path.write_bytes(data)
        code = {Ending.TIMEOUT: None, Ending.FINISHED: 0}.get(fate.ending, 1)
        return Result(code, stdout, b"", timeout if code is None else 0.1)

    def _talk(self, model: str, limit: int | None) -> int:
        """Ask the model; returns how often, 0 where it broke off."""
        parameters = {"type": "object", "properties": {"command": {"type": "string"}}}
        tools = [{"type": "function", "function": {"name": TOOL, "parameters": parameters}}]
        prompt = self._files[f"{STATE_DIR}/prompt"].decode()
        messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
        turns = 0
        connection = UnixConnection(self._socket)
        try:
            while turns != limit:
                body = json.dumps({"model": model, "messages": messages, "tools": tools}).encode()
                connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
                answer = json.loads(connection.getresponse().read())["choices"][0]["message"]
                turns += 1
                messages.append(answer)
                calls = answer.get("tool_calls") or []
                messages += [{"role": "tool", "tool_call_id": call["id"], "content": "done"} for call in calls]
                if not calls:
                    break
        except (OSError, ValueError, KeyError) as error:
            # as in a real workspace, where it is the claw that finds no gateway, and ends by it
            messages.append({"role": "assistant", "content": f"the model can't be reached: {error!r}"})
            turns = 0
        finally:
            connection.close()
        self._files[f"{STATE_DIR}/session.json"] = json.dumps(messages).encode()
        return turns

    def check_way_out(self) -> None:
        """There is no forwarder that could have ended."""

    def put(self, folder: str, files: Mapping[str, bytes], mode: int = 0o644) -> None:
        """Keep files."""
        del mode
        self._files.update({f"{folder}/{name}": data for name, data in files.items()})

    def fetch(self, path: str, destination: Path) -> list[Path]:
        """Copy one file to the host."""
        if path not in self._files:
            return []
        target = destination / Path(path).name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(self._files[path])
        return [target]

    def end(self) -> None:
        """Nothing runs in it but the program, which can't be ended from outside."""

    def freeze(self) -> None:
        """Nothing runs in it any more."""
