"""hermes, from PyPI."""

from adapters.hermes import CONFIG_FOLDER, VERSION
from clawbench.installers.python import PythonInstaller

INSTALLER = PythonInstaller(
    "hermes", VERSION, ("-c", str(CONFIG_FOLDER / "constraints.txt"), f"hermes-agent[anthropic]=={VERSION}")
)
