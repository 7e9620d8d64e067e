"""The suite's command-line options. `run_settings` turns them into settings."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, Literal

import pytest

from clawbench.pytest_plugin.selection import SETS
from evaluation.collection import AdapterPart
from gateway.behaviours.behaviour_table import BEHAVIOURS
from records.case_id import MOST_SAMPLES

DEFAULT_MODEL = "scripted:oracle"
DEFAULT_RESERVE = 5 << 30
"""Bytes: enough for the image of one more instance, and for the files that a claw and its tests write."""

_MOST_REPEATS = 100

_RENAMED = {
    "--gateway": "--network own (was --gateway off)",
    "--egress": "--network open (was --egress open)",
    "--adapter": "--collect message-fuzzy (was --adapter bare)",
}
"""Options of the last release and their present names; to be removed in the next release."""


def add_options(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("clawbench", "clawbench: measure coding-agent harnesses on SWE-bench")
    for name, attributes in _OPTIONS.items():
        group.addoption(name, **attributes)
    for name in _RENAMED:
        group.addoption(name, action=_Renamed, help=argparse.SUPPRESS)


class _Renamed(argparse.Action):
    """Refuses an option of the last release."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,  # noqa: ARG002 - argparse passes it
        values: str | Sequence[Any] | None,  # noqa: ARG002 - as above
        option_string: str | None = None,
    ) -> None:
        parser.error(f"{option_string} was renamed to {_RENAMED[option_string or '']}")


def size(text: str) -> int:
    """A number of bytes, written as in Docker: `200GB`, `512m`; each unit is 1024 times the one below it.

    Raises:
        ArgumentTypeError: the text is not a size.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size: write it like 200GB, 512m or as a number of bytes"
        )
    return int(float(found[1]) * 1024 ** " kmgt".index(found[2].lower() or " "))


_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kmgt]?)(?:i?b)?", re.IGNORECASE)


def image_policy(text: str) -> Literal["keep", "prune"] | int:
    """The value of `--image-policy`; a number is the bytes that images may take.

    Raises:
        ArgumentTypeError: it is neither a policy nor a size above 0.
    """
    if text == "keep":
        return "keep"
    if text == "prune":
        return "prune"
    limit = size(text) if _SIZE.fullmatch(text.strip()) else 0
    if not limit:
        raise argparse.ArgumentTypeError(f"{text!r} is not keep, prune or a size above 0, like 200GB")
    return limit


_ARCHITECTURES = frozenset(
    ("386", "amd64", "arm", "arm64", "loong64", "mips64", "mips64le", "ppc64", "ppc64le", "riscv64", "s390x")
)
"""The architectures that Linux images are published for, named as in the OCI image index (Go's GOARCH)."""


def _platform(text: str) -> str:
    matched = re.fullmatch(r"linux/([a-z0-9]+)(/v[0-9]+)?", text)
    if matched is None or matched[1] not in _ARCHITECTURES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a platform of Linux containers, like linux/amd64")
    return text


def adapter_parts(text: str) -> tuple[AdapterPart, ...]:
    """The value of `--adapter-parts`, in the order of a case's life.

    Raises:
        ArgumentTypeError: a part is unknown, or cleaning is asked for without an export.
    """
    words = [] if text == "none" else text.split(",")
    if unknown := sorted(set(words) - set(AdapterPart)):
        raise argparse.ArgumentTypeError(
            f"{', '.join(unknown)!r}: the parts are {', '.join(AdapterPart)}, or none"
        )
    if AdapterPart.CLEANING in words and AdapterPart.EXPORT not in words:
        raise argparse.ArgumentTypeError("cleaning needs export: a message is never cleaned")
    return tuple(part for part in AdapterPart if part in words)


def _samples(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if not 0 < number <= MOST_SAMPLES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MOST_SAMPLES}")
    return number


def _repeat(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if not 0 < number <= _MOST_REPEATS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {_MOST_REPEATS}")
    return number


def _images(text: str) -> int:
    if text == "all":
        return 1 << 31
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number of images nor 'all'")
    return int(text)


def _model_help() -> str:
    behaviours = "; ".join(f"{name}: {behaviour.about}" for name, behaviour in BEHAVIOURS.items())
    told = (
        f"the model behind the gateway (default: {DEFAULT_MODEL}, free of cost): <provider>/<model>, with a provider "
        "that `clawbench providers` lists; replay:<folder>, which answers from recordings made with --record, in the "
        "folder of a run or in one with cassettes named <case id>.jsonl; or scripted:<name>, one of: "
    )
    return (told + behaviours).replace("%", "%%")


_OPTIONS: dict[str, dict[str, Any]] = {
    "--claw": {
        "action": "append",
        "default": [],
        "metavar": "NAME",
        "help": "run this claw; may be given several times (default: every installed claw; -k selects claws, too)",
    },
    "--set": {
        "action": "append",
        "default": [],
        "metavar": "NAME",
        "help": f"run the instances of this set, one of {', '.join(SETS)}; may be given several times (default: the "
        "embedded set `demo`, unless -m, -k or test ids name real instances)",
    },
    "--run-id": {
        "help": "name of the run and of its folder; the same name again resumes that run (default: claw, model and "
        "time)"
    },
    "--model": {"help": _model_help()},
    "--spend-limit": {
        "metavar": "USD",
        "help": "the most that all cases of this run id may cost together. At the limit, no further request is sent, "
        "running cases end and their patches are exported, no case begins, and the same command with a higher limit "
        "resumes (default: none)",
    },
    "--case-spend-limit": {
        "metavar": "USD",
        "help": "the most that one case may cost; at the limit the claw is ended and its patch judged (default: none)",
    },
    "--exclude-waits": {
        "action": "store_true",
        "help": "extend a case's timeout by the time that the gateway held its requests back for rate limits and retries",
    },
    "--record": {
        "action": "store_true",
        "help": "keep every exchange with the model, without keys, as cassette.jsonl in each case's folder",
    },
    "--network": {
        "choices": ["gateway", "open", "own"],
        "default": "gateway",
        "help": "what a workspace can reach. gateway: only the model endpoint. open: the internet as well. own: the "
        "internet and no gateway; claws ask their own providers, with your own configuration and credentials, which "
        "are then in the workspace; nothing is counted or limited. With open and own the results can't be compared "
        "with others, and the manifest says so (default: gateway)",
    },
    "--collect": {
        "choices": ["workspace", "message-strict", "message-fuzzy", "paired"],
        "default": "workspace",
        "help": "how the patch gets to the judge. workspace: from the repository. message-fuzzy: the paper's minimal "
        "adapter; the prompt is the issue and a request for a diff in the final message, and that diff is judged as "
        "the official harness applies it. message-strict: the same, but it must pass `git apply`. paired: the prompt "
        "asks for the edit and for the diff; the edit counts, and the diff is judged in both other ways, to compare "
        "(default: workspace)",
    },
    "--adapter-parts": {
        "type": adapter_parts,
        "metavar": "PART,...|none",
        "help": "to measure what each part of the adapter is worth: the parts that are on, of preparation (of the "
        "workspace), prompt (the shared one), export (of the repository; without it, the diff in the final message "
        "counts) and cleaning (of the export). `clawbench parts` computes their worth (default: the usual adapter)",
    },
    "--agent-timeout": {
        "type": float,
        "default": 3600,
        "metavar": "SECONDS",
        "help": "wall-clock time for one claw on one instance (default: 3600)",
    },
    "--samples": {
        "type": _samples,
        "default": 1,
        "metavar": "K",
        "help": "independent cases of each claw and instance, each in a fresh workspace; the same --run-id with a "
        "higher number adds samples to a run (default: 1)",
    },
    "--eval-slots": {
        "type": int,
        "metavar": "N",
        "help": "how many evaluations run at the same time, over all runs on this machine. They need a core each, while "
        "agents, whose number is -n, mostly wait for their model (default: the number of cores)",
    },
    "--infra-retries": {
        "type": int,
        "default": 2,
        "metavar": "N",
        "help": "how often a case is run again within the command after an infrastructure error or the death of its "
        "worker; never because of what a claw did (default: 2)",
    },
    "--outage-limit": {
        "type": float,
        "default": 1800.0,
        "metavar": "SECONDS",
        "help": "how long cases wait while the engine or the provider is gone; after that no further case begins, and "
        "the same command resumes (default: 1800)",
    },
    "--max-turns": {
        "type": int,
        "default": 300,
        "metavar": "N",
        "help": "how many model turns a claw may take (default: 300)",
    },
    "--llm-no": {
        "type": int,
        "default": 0,
        "metavar": "N",
        "help": "generic only: which of its configured models to use (default: 0)",
    },
    "--eval-timeout": {
        "type": float,
        "default": 1800,
        "metavar": "SECONDS",
        "help": "time for the tests of one evaluation (default: 1800)",
    },
    "--eval-network": {
        "choices": ["auto", "none", "open"],
        "default": "auto",
        "help": "whether the tests of an evaluation, with the code of the patch, get a network. auto: none for embedded "
        "tasks and where `clawbench gold` has found that the gold patch resolves without one, else open, as in the "
        "official harness; each case's manifest says which (default: auto)",
    },
    "--min-pass-rate": {
        "metavar": "RATE",
        "help": "for CI: let the exit status say whether Pass@1 of every selected claw is at least RATE, as in 0.4 or "
        "40%%, even if single cases failed. 0: it is. 10: it is not. 11: undecided, because cases broke or were not "
        "run. pytest's other exit statuses (interrupted, bad usage, nothing selected, other tests failed) are kept",
    },
    "--artifacts": {"default": "artifacts", "metavar": "DIR", "help": "folder of all runs (default: artifacts)"},
    "--no-resume": {
        "action": "store_true",
        "help": "run the selected cases again even if the run has their outcomes",
    },
    "--keep-container": {
        "choices": ["never", "failed", "always"],
        "default": "never",
        "help": "keep stopped workspaces for inspection, with names that begin with 'kept.' (default: never)",
    },
    "--dataset": {
        "metavar": "PATH",
        "help": "rows of the real instances: a .json, .jsonl or .parquet file, a saved dataset's folder, a task repo "
        "or a name on the hub (default: the official datasets)",
    },
    "--dataset-revision": {
        "action": "append",
        "default": [],
        "metavar": "[SET=]REVISION",
        "help": "commit, branch or tag of a dataset on the hub, for all sets or for one, as in multilingual=<commit>; "
        "may be given several times (default: what the run has recorded, otherwise the head)",
    },
    "--instances": {
        "metavar": "FILE",
        "help": "run only the instances that a file lists: one id per line, '#' begins a comment; -m, -k and ids "
        "select among them",
    },
    "--predictions": {
        "action": "append",
        "default": [],
        "metavar": "[NAME=]FILE",
        "help": "run no claw: judge the predictions that another tool made, in a file (JSON lines, a list, an object by "
        "instance id) or a folder with one. All its instances are selected; -m, -k, --set, --instances and ids select "
        "among them. NAME takes the place of a claw's name (default: made of model_name_or_path); may be given several "
        "times. `clawbench judge` uses it",
    },
    "--platform": {
        "type": _platform,
        "metavar": "OS/ARCH",
        "help": "platform of images and containers, as in linux/amd64; an engine with another architecture emulates it, "
        "slowly and only if QEMU is set up (default: the engine's own)",
    },
    "--image-policy": {
        "type": image_policy,
        "default": "keep",
        "metavar": "keep|prune|SIZE",
        "help": "what happens to images that the suite pulled or built. keep: they are kept. prune: an instance's images "
        "are removed once no coming case needs them. A size, as in 200GB: above it, the images whose next use is "
        "furthest away are removed. Other images are never removed (default: keep)",
    },
    "--disk-reserve": {
        "type": size,
        "default": DEFAULT_RESERVE,
        "metavar": "SIZE",
        "help": "free space that a case needs on the engine's disk in order to begin; on the artifacts' disk, a tenth of "
        "that. When there is room again, the same command resumes (default: 5GB)",
    },
    "--doctor": {
        "action": "store_true",
        "help": "run nothing; check everything that the run would need, and print for each fault what to do. `clawbench "
        "doctor` uses it",
    },
    "--estimate": {
        "action": "store_true",
        "help": "run nothing: print the hours, dollars and disk that a run will take. `clawbench estimate` uses it",
    },
    "--skip-checks": {
        "action": "store_true",
        "help": "begin a real run (one that costs money or has real instances) without checking the engine, the disk, "
        "the claws, the images and the model first",
    },
    "--no-request": {
        "action": "store_true",
        "help": "do not send the one tiny request to the model that is part of the checks and costs a fraction of a cent",
    },
    "--offline": {
        "action": "store_true",
        "help": "let the checks contact only the engine: no model, no registry, no hub",
    },
    "--check-images": {
        "type": _images,
        "default": 3,
        "metavar": "N",
        "help": "how many missing images the checks look up in their registry, or 'all'; each lookup may count as a "
        "pull (default: 3)",
    },
    "--gold": {
        "action": "store_true",
        "help": "run no claw: have the official harness judge the gold patch of the selected instances, and an empty "
        "one, to find instances whose environment is broken on this machine. `clawbench gold` uses it",
    },
    "--repeat": {
        "type": _repeat,
        "default": 1,
        "metavar": "K",
        "help": "with --gold: judge the gold patch K times, to find instances whose tests do not always end alike "
        "(default: 1)",
    },
    "--no-empty": {
        "action": "store_true",
        "help": "with --gold: skip the empty patch. It doubles the time, and finds instances that any patch resolves",
    },
}
"""The options, with their help texts."""
