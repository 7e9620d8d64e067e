"""What an adapter must get right: `pytest -m conformance -k <claw>`. Each docstring is a row of the table."""

import pytest

from tests_bench.conformance.conformance_runs import (
    BARE_IMAGE,
    EDIT,
    EDITED,
    ENDLESS,
    FAILING,
    HUNG_MODEL,
    HUNG_TOOL,
    LONG,
    NUL,
    PLAIN,
    RECOVERING,
    STRAY,
    TURNS,
    Run,
)
from tests_bench.conformance.edit_repository import EDITS, expected_edits, own_files
from tests_bench.conformance.laboratory import Laboratory
from tests_bench.conformance.requirements import arrives, done, ends_in_time, has_edit, is_saved, limit, require

pytestmark = pytest.mark.conformance

SAID = {
    "unauthorized": "the provider refused the key or the account",
    "limited": "the provider's rate limit",
    "broken": "the provider failed",
    "dropped": "the provider broke the connection off",
    "garbage": "the provider's answer was malformed",
    "empty": "the model's last answer was empty",
}


# -- edits ------------------------------------------------------------------------------------------------------


def test_an_edit_of_each_kind_arrives(lab: Laboratory, evidence: list[str]) -> None:
    """An edit of each kind arrives."""
    changed = done(lab, EDITED).changed_files
    wanted = expected_edits()
    lost = [
        edit.kind
        for edit in EDITS
        if any(changed.get(b"conformance/" + path, "nothing") != left for path, left in edit.leaves.items())
    ]
    require(not lost, f"not in the patch as made: {', '.join(lost)}")
    more = [repr(path) for path in changed if path.startswith(b"conformance/") and path not in wanted]
    require(not more, f"in the patch but never made: {', '.join(more)}")
    evidence.append(", ".join(edit.kind for edit in EDITS))


def test_nothing_of_the_claws_own_is_in_the_patch(lab: Laboratory) -> None:
    """Nothing of the claw's own is in the patch."""
    more = sorted(path.decode("utf-8", "replace") for path in done(lab, PLAIN).changed_files)
    require(more == [EDIT[0]], f"in the patch: {', '.join(more) or 'nothing at all'}; made was {EDIT[0]}")


def test_a_repository_file_of_the_same_name_is_not_lost(lab: Laboratory) -> None:
    """A repository's file that is named as the claw's own is not lost."""
    changed = done(lab, EDITED).changed_files
    own = {name.encode() for name in own_files(lab.adapter.agent_files)}
    touched = sorted(path.decode() for path in own & changed.keys() if path != b"AGENTS.md")
    require(not touched, f"changed by the claw: {', '.join(touched)}")
    edited = changed.get(b"AGENTS.md")
    right = edited is not None and edited[1] == b"The repository's own AGENTS.md.\na line of the model\n"
    require(right, f"the edit of the repository's own AGENTS.md did not arrive: {edited!r}")
    rest = [path for path in changed if not path.startswith(b"conformance/") and path not in own]
    require(not rest, f"in the patch but never made: {rest!r}")


# -- the prompt -------------------------------------------------------------------------------------------------


def test_a_prompt_of_64_kib_arrives_whole(lab: Laboratory) -> None:
    """A prompt of 64 KiB with all that is hard about text arrives whole."""
    arrives(lab, PLAIN)


def test_a_prompt_of_200_kib_arrives_whole(lab: Laboratory) -> None:
    """A prompt of 200 KiB arrives whole."""
    arrives(lab, LONG)


def test_a_nul_is_refused(lab: Laboratory, evidence: list[str]) -> None:
    """A prompt with a NUL is refused with a clear error."""
    found = lab.finished(NUL)
    require(found.refused, "it was taken")
    require("NUL" in found.refused, f"the error does not say so: {found.refused}")
    evidence.append(found.refused)


# -- its settings -----------------------------------------------------------------------------------------------


def test_the_models_name_is_honoured(lab: Laboratory) -> None:
    """The model's name is honoured."""
    models = done(lab, PLAIN).usage["gateway"]["models"]
    require(models == ["scripted-commands"], f"it asked for {models}, not for scripted-commands")


def test_the_limit_of_turns_is_honoured(lab: Laboratory, evidence: list[str]) -> None:
    """The limit of turns is honoured."""
    found = done(lab, ENDLESS)
    working = sum(1 for request in found.requests if request.get("tools"))
    asked = len(found.requests)
    require(working == TURNS, f"the limit was {TURNS}; it worked for {working} turns with {asked} requests")
    require(asked <= TURNS + 2, f"{asked} requests for a limit of {TURNS} turns")
    evidence.append(f"{TURNS} turns with tools, {asked - working} closing request(s) without")


def test_the_budget_is_honoured_by_a_hung_model(lab: Laboratory, evidence: list[str]) -> None:
    """A model that hangs ends in time, with what was edited so far."""
    ends_in_time(lab, HUNG_MODEL, evidence)


def test_the_budget_is_honoured_by_a_hung_tool(lab: Laboratory, evidence: list[str]) -> None:
    """A tool that hangs ends in time, with what was edited so far."""
    ends_in_time(lab, HUNG_TOOL, evidence)


# -- the provider -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", FAILING, ids=lambda run: run.model)
def test_failures_of_the_provider_are_told_apart(lab: Laboratory, run: Run, evidence: list[str]) -> None:
    """Told apart in the outcome, whatever the claw's exit code."""
    found = done(lab, run)
    said = f"{found.failed or found.facts['detail']}"
    require(SAID[run.model] in said, f"the case ended as {found.facts['ending']}: {said or 'with no word on it'}")
    evidence.append(f"exit code {found.facts['exit_code']}, {found.facts['requests']} request(s): {said}")


def test_a_provider_that_recovers_ends_well(lab: Laboratory, evidence: list[str]) -> None:
    """A provider that recovers after two failures ends well."""
    found = done(lab, RECOVERING)
    ending = found.facts.get("ending")
    failures = sum(1 for row in found.log if row["status"] == 500)
    if failures < 2 and ending != "finished":
        limit(f"it gave up after {failures} failure(s): {found.facts.get('detail')}")
    require(ending == "finished", f"it ended as {ending}: {found.facts.get('detail')}")
    require(has_edit(found), "the edit is not in the patch")
    evidence.append(f"{failures} failures, then {found.facts['turns']} turns")


def test_the_tools_are_the_declared_ones(lab: Laboratory, evidence: list[str]) -> None:
    """The tools that reach the model are exactly the declared ones."""
    declared = lab.adapter.allowed_tools
    require(declared is not None, "the adapter declares no tools")
    counts = done(lab, PLAIN).usage["gateway"]
    surface = set(counts["tool_surface"])
    more, fewer = sorted(surface - set(declared or ())), sorted(set(declared or ()) - surface)
    require(not more, f"beyond the declared ones: {', '.join(more)}")
    require(not fewer, f"declared and not offered by the claw: {', '.join(fewer)}")
    removed = counts["removed_tools"]
    evidence.append(f"{len(surface)} tools; the gateway removed {', '.join(removed) or 'none'}")


def test_a_call_to_a_removed_tool_is_an_unknown_tools(lab: Laboratory, evidence: list[str]) -> None:
    """A call to a removed tool is answered as an unknown tool's."""
    found = done(lab, STRAY)
    answers = found.answers()
    require(len(answers) > 2, f"the model called {len(answers)} tools; the last must be its shell")
    unknown, *strays, _ = answers
    for answer in strays:
        require(answer == unknown, f"a removed tool's call was answered {answer!r}, an unknown tool's {unknown!r}")
    renamed = sorted(name for row in found.log for name in row.get("removed_calls", []))
    removed = found.usage["gateway"]["removed_tools"]
    require(renamed == removed, f"the gateway handled calls of {renamed}; it removed {removed}")
    require(has_edit(found), "the edit that came after is not in the patch")
    evidence.append(f"{', '.join(renamed)}: {unknown}")


# -- the container ----------------------------------------------------------------------------------------------


def test_no_key_host_name_or_host_path(lab: Laboratory, evidence: list[str]) -> None:
    """No key, host name or host path is in the container or in the artifacts."""
    for run in (PLAIN, EDITED):
        seen = done(lab, run).sections
        require("end" in seen, "the container could not be searched")
        require(
            seen["processes"] == ["seen"], "the environments and command lines of the processes were not recorded"
        )
        require(not seen["found"], f"in the container: {', '.join(seen['found'][:5])}")
    for run in (PLAIN, EDITED, HUNG_MODEL, *FAILING):
        found = lab.finished(run)
        for what, text in lab.secrets.items():
            files = found.files_with(text)
            require(not files, f"{what} is in the artifacts: {', '.join(files[:5])}")
    evidence.append(f"searched for {', '.join(lab.secrets)}")


def test_no_request_leaves(lab: Laboratory, evidence: list[str]) -> None:
    """No request leaves for any other host."""
    for run in (PLAIN, EDITED):
        seen = done(lab, run).sections
        require("end" in seen, "the container could not be looked into")
        require(seen["devices"] == ["lo"], f"network devices: {seen['devices']}")
        require(not seen["routes"], f"routes: {seen['routes']}")
        require(not seen["peers"], f"peers other than loopback: {seen['peers']}")
    tries, after = (int(seen[name][0]) for name in ("tries", "tries-after-three-of-ours"))
    counted = (
        f"{tries} packet(s) of its own found none" if after >= tries + 3 else "the kernel does not count tries"
    )
    plain = done(lab, PLAIN)
    paths = sorted({f"{row['method']} {row['path']}" for row in plain.log if row["ending"] == "refused"})
    evidence.append(
        f"loopback is the only device, and no route; {counted}; refused by the gateway: {paths or 'none'}"
    )


def test_two_cases_at_a_time_do_not_see_each_other(lab: Laboratory) -> None:
    """Two cases at the same time do not see each other."""
    one, other = done(lab, PLAIN), done(lab, EDITED)
    require(
        one.began < other.ended and other.began < one.ended, "the two runs did not overlap; run the tests again"
    )
    for run, found, stranger in ((PLAIN, one, EDITED), (EDITED, other, PLAIN)):
        require(found.files_with(run.token), "a run's own token is not in its artifacts")
        strange = found.files_with(stranger.token)
        require(not strange, f"of the other case, in the artifacts of {run.name}: {', '.join(strange[:5])}")


def test_a_second_run_leaves_the_runtime_as_it_was(lab: Laboratory) -> None:
    """A second run leaves the installed runtime byte-identical, mounted read-only, used by root."""
    for run in (PLAIN, EDITED):
        seen = done(lab, run).sections
        require(seen["uid"] == ["0"], f"the user is {seen['uid']}")
        require(not seen["writable"], f"the container can write to {', '.join(seen['writable'])}")
    require(lab.runtime_before() == lab.runtime_now(), "the runtime is not what it was before the first run")


def test_an_image_without_python_node_and_git(lab: Laboratory) -> None:
    """An image without python, node and git on PATH will do."""
    found = lab.finished(BARE_IMAGE)
    if found.refused:
        require("CLAW_PYTHON_HOME" in found.refused, f"it does not say what to do: {found.refused}")
        limit(f"the claw is a Python program, and no Python was given: {found.refused}")
    require(found.facts["ending"] == "finished", f"it ended as {found.facts['ending']}: {found.facts['detail']}")
    require(has_edit(found), "the edit is not in the patch")


# -- what is kept -----------------------------------------------------------------------------------------------


def test_session_and_usage_are_saved(lab: Laboratory, evidence: list[str]) -> None:
    """Session and usage are saved."""
    found = done(lab, PLAIN)
    is_saved(found)
    require(b"There is nothing more to do." in found.session, "the closing text is not in the session")
    reported, apart = found.usage["claw"], found.facts["usage_mismatches"]
    require(reported is not None, "the claw's own usage could not be read")
    require(not apart, "; ".join(apart))
    unknown = [name for name, value in reported.items() if value is None]
    evidence.append(
        f"the claw does not report {', '.join(unknown)}" if unknown else "all four classes are reported"
    )


def test_session_and_usage_are_saved_after_a_timeout(lab: Laboratory, evidence: list[str]) -> None:
    """Session and usage are saved after a timeout, too."""
    found = done(lab, HUNG_MODEL)
    is_saved(found)
    reported = found.usage["claw"]
    evidence.append(
        "the claw's own usage too" if reported else "the gateway's usage; the claw reports its own only at its end"
    )
