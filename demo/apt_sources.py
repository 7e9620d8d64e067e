"""Where this host gets its packages: the mirror and suite that a base image is bootstrapped from.

Reads the host's own apt configuration, one-line and deb822 formats, on Debian and Ubuntu, so that the
suite never has to know the name of a mirror. Only the distribution's own archive counts; what else is
configured (a vendor's repository, a cdrom) is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

POCKETS = ("", "-updates", "-security")
"""What is appended to a release's code name in the suites that a base image needs."""

COMPONENTS = {"debian": ("main",), "ubuntu": ("main", "universe")}
"""What holds the test tools; Ubuntu keeps most compilers' front ends in universe."""


class AptConfigError(RuntimeError):
    """The host's apt configuration does not say where its distribution comes from."""


@dataclass(frozen=True)
class Source:
    """One archive: a mirror's address, one suite of it, and the components that are enabled."""

    uri: str
    suite: str
    components: tuple[str, ...]
    signed_by: str | None = None
    """Path of the keyring that the entry names, if it names one."""


@dataclass(frozen=True)
class Archive:
    """The distribution's archive as this host reaches it."""

    codename: str
    main: Source
    sources: tuple[Source, ...]
    """`main` and the updates and security suites beside it."""

    def one_line_format(self, keyring: str | None = None) -> str:
        """The text of a `sources.list` for an image bootstrapped from this archive, verified by `keyring`."""
        options = f"[signed-by={keyring}] " if keyring else ""
        return "".join(f"deb {options}{s.uri} {s.suite} {' '.join(s.components)}\n" for s in self.sources)


def host_archive(root: Path = Path("/")) -> Archive:
    """The archive that the system under `root` is installed from.

    Raises `AptConfigError` if it is neither Debian nor Ubuntu (or a derivative that names its parent), or
    if no enabled source is the distribution's own.
    """
    release = _os_release(root / "etc/os-release")
    family = _family(release)
    codename = release.get("UBUNTU_CODENAME") or release.get("VERSION_CODENAME") or ""
    if not family or not codename:
        name = release.get("PRETTY_NAME", "this system")
        raise AptConfigError(f"{name} is neither a Debian nor an Ubuntu release with a code name")
    wanted = COMPONENTS[family]
    found: dict[str, Source] = {}
    for source in _by_likelihood(configured_sources(root), family):
        if source.suite not in {codename + pocket for pocket in POCKETS} or "main" not in source.components:
            continue
        usable = replace(
            source,
            uri=_reachable_uri(source.uri, root),
            components=tuple(c for c in wanted if c in source.components),
        )
        if usable.uri.startswith(("http://", "https://")):
            found.setdefault(usable.suite, usable)
    if codename not in found:
        raise AptConfigError(f"no enabled apt source on this host serves the suite {codename!r} with 'main'")
    ordered = tuple(found[codename + pocket] for pocket in POCKETS if codename + pocket in found)
    return Archive(codename=codename, main=found[codename], sources=ordered)


def configured_sources(root: Path = Path("/")) -> list[Source]:
    """Every enabled binary source under `root`/etc/apt, in apt's own order of files."""
    apt = root / "etc/apt"
    parts = sorted((apt / "sources.list.d").glob("*")) if (apt / "sources.list.d").is_dir() else []
    sources: list[Source] = []
    for path in [apt / "sources.list", *parts]:
        if path.suffix == ".list" and path.is_file():
            sources += parse_one_line(path.read_text(encoding="utf-8", errors="replace"))
        elif path.suffix == ".sources" and path.is_file():
            sources += parse_deb822(path.read_text(encoding="utf-8", errors="replace"))
    return sources


def parse_one_line(text: str) -> list[Source]:
    """The binary sources in a file of the `deb [options] uri suite component…` format."""
    pattern = re.compile(r"deb\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)(?P<rest>.*)")
    sources = []
    for line in text.splitlines():
        match = pattern.fullmatch(line.partition("#")[0].strip())
        if match:
            options = dict(o.partition("=")[::2] for o in (match["options"] or "").split())
            components = tuple(match["rest"].split())
            sources.append(Source(match["uri"], match["suite"], components, options.get("signed-by")))
    return sources


def parse_deb822(text: str) -> list[Source]:
    """The enabled binary sources in a file of the deb822 (`.sources`) format."""
    sources = []
    for stanza in _stanzas(text):
        enabled = stanza.get("enabled", "yes").lower() not in {"no", "false", "0", "off", "without", "disable"}
        if not enabled or "deb" not in stanza.get("types", "").split():
            continue
        signed_by = stanza.get("signed-by", "").strip()
        keyring = signed_by if signed_by.startswith("/") and "\n" not in signed_by else None
        sources += [
            Source(uri, suite, tuple(stanza.get("components", "").split()), keyring)
            for uri in stanza.get("uris", "").split()
            for suite in stanza.get("suites", "").split()
        ]
    return sources


def _stanzas(text: str) -> Iterator[dict[str, str]]:
    fields: dict[str, str] = {}
    last = ""
    for line in [*text.splitlines(), ""]:
        if line.startswith("#"):
            continue
        if not line.strip():
            if fields:
                yield fields
            fields, last = {}, ""
        elif line[0].isspace():
            fields[last] = f"{fields.get(last, '')}\n{line.strip()}"
        else:
            name, _, value = line.partition(":")
            last = name.strip().lower()
            fields[last] = value.strip()


def _os_release(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    pairs = (line.partition("=") for line in path.read_text(encoding="utf-8").splitlines() if "=" in line)
    return {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}


def _family(release: dict[str, str]) -> str | None:
    names = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    # A derivative of Ubuntu lists both, and its packages are Ubuntu's.
    return next((family for family in ("ubuntu", "debian") if family in names), None)


def _by_likelihood(sources: Iterable[Source], family: str) -> list[Source]:
    """The distribution's own archives first: a vendor may use the same suite and component names."""

    def doubt(source: Source) -> int:
        if source.signed_by and f"{family}-archive-keyring" not in Path(source.signed_by).name:
            return 2
        last = source.uri.rstrip("/").rpartition("/")[2]
        return 0 if last.startswith(family) or source.uri.startswith("mirror+file:") else 1

    return [source for source in sorted(sources, key=doubt) if doubt(source) < 2]


def _reachable_uri(uri: str, root: Path) -> str:
    """What a `mirror+file:` list (cloud images use one) offers first; any other address as it is."""
    if not uri.startswith("mirror+file:"):
        return uri
    listed = root / uri.removeprefix("mirror+file:").lstrip("/")
    if not listed.is_file():
        return uri
    lines = (line.split()[0] for line in listed.read_text(encoding="utf-8").splitlines() if line.split())
    return next((line for line in lines if not line.startswith("#")), uri)
