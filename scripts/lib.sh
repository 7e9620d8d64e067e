# shellcheck shell=bash disable=SC2034
# Shared by the scripts beside it: messages, and what kind of machine this is. To be sourced, not run.
#
# CLAWBENCH_OS_RELEASE names another file than /etc/os-release to tell the distribution by (for tests).

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
state="${CLAWBENCH_HOME:-$root/.claws}"

say() {
    printf '[setup] %s\n' "$*" >&2
}

die() { # the lines of a message, each an argument
    printf '%s\n' "$@" >&2
    exit 2
}

has() {
    command -v "$1" >/dev/null 2>&1
}

can_install() { # root on Debian, Ubuntu or a relative, with apt
    [ "$(id -u)" = 0 ] && has apt-get &&
        grep -Eq '^(ID|ID_LIKE)="?([a-z ]+ )?(debian|ubuntu)\b' "${CLAWBENCH_OS_RELEASE:-/etc/os-release}" 2>/dev/null
}

find_python() { # prints the first Python that is new enough; fails if there is none
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

engine_answers() { # whether a Docker engine answers where the Docker SDK will look for it
    local python
    if python="$(command -v python3)"; then
        "$python" -I "$root/scripts/ping_engine.py"
    else
        has docker && docker version >/dev/null 2>&1
    fi
}
