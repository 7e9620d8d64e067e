"""History preparation: one pack of the closure, against stripping by date with `git gc --aggressive`.

Both run on the same generated repository in containers of one image. The second is what the reference
implementation of the paper describes: delete what is dated after the base commit, expire reflogs, collect garbage.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import docker
from rich.table import Table

from tools.benchmarks.benchmark_images import MARKS, base_image, image_with
from workspace.prepare import WORKDIR
from workspace.throwaway import run_script, script, throwaway

COMMITS = 20_000
REFS = 2_000

_GENERATE = f"""
set -eu
rm -rf {WORKDIR} && git init -q -b main {WORKDIR} && cd {WORKDIR}
python3 - <<'PYTHON' | git fast-import --quiet
import sys
commits, refs, files = {COMMITS}, {REFS}, 400
base = commits * 6 // 10
out = sys.stdout.buffer
def commit(ref, number, parent, when, text):
    out.write(b"commit %s\\nmark :%d\\n" % (ref, number))
    out.write(b"committer A <a@example.org> %d +0000\\ndata 8\\ncommit\\n\\n" % when)
    if parent: out.write(b"from :%d\\n" % parent)
    data = text.encode()
    path = "src/m%d/f%d.py" % (number % 20, number % files)
    out.write(b"M 644 inline %s\\ndata %d\\n%s\\n" % (path.encode(), len(data), data))
for number in range(1, commits + 1):
    lines = ["def f%d_%d(): return %d" % (number % files, line, number * line % 9973) for line in range(60)]
    commit(b"refs/heads/main", number, number - 1, 1500000000 + number * 3600, "\\n".join(lines))
step = commits // (refs // 2)
for number in range(step, commits + 1, step):
    out.write(b"reset refs/tags/v%d\\nfrom :%d\\n\\n" % (number, number))
for side in range(refs // 2):
    # fixes on side branches, dated before the base commit: dates prove nothing
    when = 1500000000 + (base - 1) * 3600
    commit(b"refs/remotes/origin/fix%d" % side, commits + 1 + side, base + side, when, "fixed %d" % side)
PYTHON
git reset -q --hard v{COMMITS * 6 // 10}
git repack -adq
git rev-parse HEAD
"""

_BY_DATE = f"""
set -eu
cd {WORKDIR}
base=$(git rev-parse HEAD)
when=$(git show -s --format=%ct "$base")
git checkout -q --detach
git for-each-ref --format='%(refname) %(committerdate:unix)' refs/tags refs/heads refs/remotes |
    while read -r ref date; do if [ "$date" -gt "$when" ]; then echo "delete $ref"; fi; done |
    git update-ref --stdin
git reflog expire --expire=now --all
git gc -q --prune=now --aggressive
"""

_FOREIGN = f"""
cd {WORKDIR}
git rev-list HEAD | sort > /tmp/own
git cat-file --batch-all-objects --batch-check='%(objectname) %(objecttype)' | sed -n 's/ commit$//p' | sort |
    comm -23 - /tmp/own | wc -l
"""


def run(client: docker.DockerClient, say: Callable[[str], None]) -> Table:
    """Measure both ways, one after the other."""
    say(f"generating a repository of {COMMITS:,} commits and {REFS:,} refs")
    with image_with(
        client, base_image(client, say), "history", {"generate.sh": _GENERATE}, ["/clawbench/generate.sh"]
    ) as (image, lines):
        base = lines[-1]
        say("one pack of the closure")
        ours, ours_left = _measure(client, image, script("strip.sh"), [WORKDIR, base])
        say("by date, with git gc --aggressive (this takes minutes)")
        dated, dated_left = _measure(client, image, _BY_DATE, [])
    table = Table(
        "history preparation", "seconds", "foreign commits left", "times faster", title_justify="left", box=None
    )
    table.add_row("by date, git gc --aggressive", f"{dated:.1f}", f"{dated_left:,}", "1")
    table.add_row("one pack of the closure", f"{ours:.1f}", f"{ours_left:,}", f"{dated / ours:.0f} (target: 20)")
    return table


def _measure(client: docker.DockerClient, image: str, text: str, arguments: list[str]) -> tuple[float, int]:
    """Seconds that a script takes, and how many foreign commits it leaves."""
    with throwaway(client, image, MARKS, {"way.sh": text}) as container:
        began = time.monotonic()
        run_script(container, ["/clawbench/way.sh", *arguments])
        seconds = time.monotonic() - began
        left = int(_again(client, str(container.commit().id)))
    return seconds, left


def _again(client: docker.DockerClient, image: str) -> str:
    try:
        with throwaway(client, image, MARKS, {"foreign.sh": _FOREIGN}) as container:
            return run_script(container, ["/clawbench/foreign.sh"])[-1]
    finally:
        client.images.remove(image, force=True)
