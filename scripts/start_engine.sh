#!/usr/bin/env bash
# Starts a Docker engine and waits until it answers: with systemd if that runs, else as a process of its own with log
# and pid in .claws/dockerd.log and .claws/dockerd.pid (in CLAWBENCH_HOME instead of .claws, if set).
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

log="$state/dockerd.log"
patience=60 # seconds

show_log() {
    if [ -n "${pid:-}" ]; then
        tail -n 20 "$log"
    else
        journalctl -u docker -n 20 --no-pager 2>/dev/null || true
    fi
}

if [ -d /run/systemd/system ]; then
    say "starting the Docker engine (systemctl start docker)"
    systemctl start docker || die "systemctl could not start docker:" "$(show_log)"
else
    mkdir -p "$state"
    say "starting the Docker engine (dockerd, log in $log)"
    setsid nohup dockerd >"$log" 2>&1 </dev/null &
    pid=$!
    echo "$pid" >"$state/dockerd.pid"
fi

for ((waited = 0; waited < patience * 5; waited++)); do
    if engine_answers; then
        exit 0
    fi
    if [ -n "${pid:-}" ] && ! kill -0 "$pid" 2>/dev/null; then
        die "dockerd ended before it answered. The end of its log ($log):" "$(show_log)" \
            "In a container it needs --privileged; on a machine, look for another dockerd."
    fi
    sleep 0.2
done
die "The Docker engine did not answer within $patience s. The end of its log:" "$(show_log)"
