"""generic, from PyPI, without the web front ends that its package asks for and its agent never imports."""

from adapters.generic import CONFIG_FOLDER, VERSION
from clawbench.installers.python import PythonInstaller

INSTALLER = PythonInstaller("generic", VERSION, ("--no-deps", "-r", str(CONFIG_FOLDER / "constraints.txt")))
