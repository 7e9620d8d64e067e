#!/usr/bin/env bash
# Fills .venv with exactly what requirements.lock says, and the project itself as an editable install.
# If a stamp shows that this is done already, it returns at once. Needs Python >= 3.11 with venv (setup.sh).
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

if has flock; then
    exec 9<requirements.lock # only one process at a time: the lock file is used as a lock
    flock 9
fi
stamp=.venv/clawbench-stamp
wanted="$root $(cat requirements.lock pyproject.toml scripts/make_venv.sh | sha256sum)"
if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && [ -x .venv/bin/python ]; then
    exit 0
fi

started=$SECONDS
if ! .venv/bin/python -m pip --version >/dev/null 2>&1 ||
    ! .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    say "making a virtual environment in .venv"
    rm -rf .venv
    "$(find_python)" -m venv .venv
fi
rm -f "$stamp"
python=.venv/bin/python
if ! has uv && [ ! -x .venv/bin/uv ]; then
    # It is ten times as fast as pip; without it, packages.py uses pip.
    $python -m pip install -q "$(grep '^uv==' requirements.lock)" || say "uv could not be installed; continuing with pip"
fi
say "installing the locked dependencies"
# as pip does: else every process would compile them again if PYTHONDONTWRITEBYTECODE is set or .venv is read-only
export UV_COMPILE_BYTECODE=1
$python -I clawbench/install/packages.py -r requirements.lock
$python -I clawbench/install/packages.py --no-deps --no-build-isolation -e .
echo "$wanted" >"$stamp"
say ".venv is ready ($((SECONDS - started)) s)"
