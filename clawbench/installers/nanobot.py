"""nanobot, from PyPI."""

from adapters.nanobot import CONFIG_FOLDER, VERSION
from clawbench.installers.python import PythonInstaller

INSTALLER = PythonInstaller(
    "nanobot", VERSION, ("-c", str(CONFIG_FOLDER / "constraints.txt"), f"nanobot-ai=={VERSION}")
)
