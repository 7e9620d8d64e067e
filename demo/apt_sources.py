"""Where this host gets its packages: the mirror and suites that a base image is bootstrapped from.

apt itself is asked for its sources, on Debian and Ubuntu, so that the suite knows the name of no mirror. Only the
distribution's own archive counts; other sources, such as a vendor's repository, are ignored.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from common.errors import ClawbenchError

POCKETS = ("", "-updates", "-security")
"""The suffixes of the suites that a base image needs, after the release's code name."""

COMPONENTS = {"debian": ("main",), "ubuntu": ("main", "universe")}
"""The components with the test tools; in Ubuntu, most compilers are in universe."""

_PACKAGES = re.compile(r"'(?P<uri>.+?)/dists/(?P<suite>[^/']+)/(?P<component>[^/']+)/binary-[^/']+/Packages")
"""What apt prints for each index of packages that it would fetch."""


class AptConfigError(ClawbenchError):
    """The host's apt configuration does not say where its distribution comes from."""


@dataclass(frozen=True)
class Source:
    """One suite of the archive."""

    uri: str
    suite: str
    components: tuple[str, ...]


@dataclass(frozen=True)
class Archive:
    """The distribution's archive as this host reaches it."""

    codename: str
    sources: tuple[Source, ...]
    """The release's own suite, then its updates and security suites."""

    def one_line_format(self, keyring: str | None) -> str:
        """The text of a `sources.list` for an image bootstrapped from this archive, verified by `keyring`."""
        options = f"[signed-by={keyring}] " if keyring else ""
        return "".join(f"deb {options}{s.uri} {s.suite} {' '.join(s.components)}\n" for s in self.sources)


def host_archive(root: Path = Path("/")) -> Archive:
    """The archive that the system under `root` is installed from.

    Raises:
        AptConfigError: the system is neither Debian nor Ubuntu (or a derivative that names its parent), or none of
            its sources is the distribution's own.
    """
    release = _os_release(root / "etc/os-release")
    names = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    # a derivative of Ubuntu lists both, and its packages are Ubuntu's
    family = next((family for family in ("ubuntu", "debian") if family in names), None)
    codename = release.get("UBUNTU_CODENAME") or release.get("VERSION_CODENAME") or ""
    if not family or not codename:
        name = release.get("PRETTY_NAME", "this system")
        raise AptConfigError(f"{name} is neither a Debian nor an Ubuntu release with a code name")
    found = _configured(root)
    # a vendor may use the same names of suites, so the addresses that look like the distribution's come first
    found.sort(key=lambda row: not (row[0].startswith("mirror+file:") or Path(row[0]).name.startswith(family)))
    sources = []
    for suite in (codename + pocket for pocket in POCKETS):
        uri = next((uri for uri, here, component in found if here == suite and component == "main"), None)
        if uri is not None and (address := _address(uri, root)).startswith(("http://", "https://")):
            components = tuple(name for name in COMPONENTS[family] if (uri, suite, name) in found)
            sources.append(Source(address, suite, components))
    if not sources or sources[0].suite != codename:
        raise AptConfigError(f"no enabled apt source on this host serves the suite {codename!r} with 'main'")
    return Archive(codename, tuple(sources))


def _os_release(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    pairs = (line.partition("=") for line in path.read_text(encoding="utf-8").splitlines() if "=" in line)
    return {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}


def _configured(root: Path) -> list[tuple[str, str, str]]:
    """Address, suite and component of all enabled sources, in apt's own order."""
    command = ["apt-get", "update", "--print-uris", "-o", f"Dir={root}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AptConfigError(f"apt-get does not tell its sources: {done.stderr.strip()[-300:]}")
    found = ((match["uri"], match["suite"], match["component"]) for match in _PACKAGES.finditer(done.stdout))
    return list(dict.fromkeys(found))


def _address(uri: str, root: Path) -> str:
    """The first address in a `mirror+file:` list, which cloud images use; any other address as it is."""
    if not uri.startswith("mirror+file:"):
        return uri
    listed = root / uri.removeprefix("mirror+file:").lstrip("/")
    lines = listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else []
    return next((line.split()[0] for line in lines if line.strip() and not line.startswith("#")), uri)
