#!/usr/bin/env bash
# Sets up what is missing, and nothing else:  setup.sh [docker] [venv]
#
#   docker  a Docker engine that answers, and debootstrap
#   venv    .venv with the locked versions of all dependencies
#
# It first looks for everything that is missing. As root on Debian or Ubuntu it installs that; for everyone else it
# says what to install and ends with exit code 2 before it has changed anything.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

want_docker='' want_venv=''
for goal in "$@"; do
    case "$goal" in
        docker) want_docker=1 ;;
        venv) want_venv=1 ;;
        *) die "setup.sh: unknown goal: $goal (docker, venv)" ;;
    esac
done

packages=() # of Debian
needs=()    # the same, in words
missing() { # package... : what it is for
    needs+=("  - ${*: -1}")
    packages+=("${@:1:$#-1}")
}

engine_up=1
if [ -n "$want_docker" ]; then
    engine_answers || engine_up=''
    socket="${DOCKER_HOST:-unix:///var/run/docker.sock}"
    socket="${socket#unix://}"
    if [ -z "$engine_up" ] && [ -S "$socket" ] && ! [ -w "$socket" ]; then
        die "There is a Docker engine, but $(id -un) may not use its socket, $socket:" \
            "  - join its group (sudo usermod -aG docker $(id -un), then log in again), or" \
            "  - let DOCKER_HOST name an engine that you may use." \
            "Nothing was changed."
    fi
    if [ -z "$engine_up" ] && ! has dockerd; then
        missing docker.io "a Docker engine (Debian: docker.io; others: https://docs.docker.com/engine/install)"
    fi
    if ! has debootstrap && can_install; then
        # Where it can't be installed here, it is needed only if no registry has the base image.
        missing debootstrap debian-archive-keyring gpgv "debootstrap"
    fi
fi
if [ -n "$want_venv" ]; then
    if ! python="$(find_python)"; then
        has python3 && die "This machine's python3 is $(python3 -V 2>&1), and clawbench needs 3.11 or newer." \
            "Install one (Debian 12 and Ubuntu 24.04 have it; or pyenv, or uv) and name it:" \
            "  make PYTHON=/path/to/python3.12 ..." \
            "Nothing was changed."
        missing python3 python3-venv python3-pip "Python 3.11 or newer (PYTHON=/path/to/python3 chooses one)"
    elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        missing python3-venv python3-pip "Python's venv module (Debian: python3-venv)"
    fi
    has git || missing git "git"
    has patch || ! can_install || missing patch "patch"
    [ -e /etc/ssl/certs/ca-certificates.crt ] || ! can_install || missing ca-certificates "certificates"
fi

if ((${#packages[@]})) && ! can_install; then
    die "clawbench needs what is missing on this machine:" "${needs[@]}" \
        "Install it and run the command again; as root on Debian or Ubuntu this command does so by itself." \
        "Nothing was changed."
fi
if [ -z "$engine_up" ] && [ "$(id -u)" != 0 ] && has dockerd; then
    die "clawbench needs a Docker engine, and none answers at ${DOCKER_HOST:-/var/run/docker.sock}:" \
        "  - start it (sudo systemctl start docker), or" \
        "  - join its group (sudo usermod -aG docker $(id -un), then log in again), or" \
        "  - let DOCKER_HOST name an engine that you can reach." \
        "Nothing was changed."
fi

if ((${#packages[@]})); then
    say "installing ${packages[*]}"
    log="$(mktemp)"
    if ! { apt-get update -q && DEBIAN_FRONTEND=noninteractive \
        apt-get install -qy --no-install-recommends "${packages[@]}"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        die "apt-get could not install ${packages[*]}; its whole output is in $log"
    fi
    rm -f "$log"
    if [ -n "$want_venv" ] && ! find_python >/dev/null; then
        die "This distribution's Python is $(python3 -V 2>&1), and clawbench needs 3.11 or newer:" \
            "install one and name it, as in  make PYTHON=/path/to/python3.12 ..."
    fi
fi

if [ -z "$engine_up" ] && ! engine_answers; then
    "$root/scripts/start_engine.sh"
fi
if [ -n "$want_venv" ]; then
    "$root/scripts/make_venv.sh"
fi
