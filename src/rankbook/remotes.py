"""What Git says of a folder, and where the repository that holds it is published."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from msgspec import Struct

from rankbook.git import asked as question

_SECONDS = 10.0
"""Time that Git may take to answer."""
_SHORT = re.compile(r"(?:[^@/\s]+@)?([A-Za-z0-9.-]{2,}):(?!/)(\S+)")
"""An address for ssh in its short form: `git@github.com:owner/name.git`."""
_FULL = re.compile(r"\.(?:xn--[a-z0-9-]+|[a-z0-9]+)\.?$|^\[")
"""How the name of a host ends that others find: no top-level domain has a hyphen. Other names are those of a person's settings of ssh."""
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\]")
_NO_PATH = re.compile(r'["<>`{}|\\^]')
"""Characters that no address may hold, and that no forge takes in a name; some would mean something to a page that shows it."""
_SAFE = "/~+@"
"""Characters of a path that an address holds as they are, beside letters, digits and `_.-`."""
_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
"""An owner whose name can be part of a host's."""
_SCHEMES = ("http", "https", "ssh", "git", "git+ssh", "git+https")
_AZURE = "dev.azure.com"
_BY_SSH = {
    "ssh.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
    "ssh.dev.azure.com": _AZURE,
    "vs-ssh.visualstudio.com": _AZURE,
}
"""Hosts that answer to ssh alone, with those that show the same to a browser."""
_AZURE_BY_SSH = re.compile(r"^v3/([^/]+/[^/]+)/([^/]+)$")
"""A repository's path as Azure has it for ssh."""
_PAGES = {"github.com": "github.io", "gitlab.com": "gitlab.io"}
"""Domains at which forges show the sites of repositories."""


def git(folder: Path, *arguments: str) -> str | None:
    """Ask Git about a folder: what it prints; None when it fails or is not there."""
    done = asked(folder, *arguments)
    return done.stdout if done is not None and done.returncode == 0 else None


def asked(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    """Ask Git about a folder: how it ended; None when it is not there, or does not answer in time."""
    done = question(folder, *arguments, seconds=_SECONDS)
    if done is None:
        return None
    said, told = (text.decode("utf-8", "surrogateescape") for text in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, said, told)


def chosen(folder: Path) -> str:
    """Name the remote at which a repository is published: `origin`, else its first one; empty without any."""
    names = (git(folder, "remote") or "").splitlines()
    return "origin" if "origin" in names else next(iter(names), "")


def address(folder: Path, name: str) -> str:
    """Give the address of a remote; empty without any. It may hold a password: nobody is shown it."""
    return (git(folder, "remote", "get-url", name) or "").strip() if name else ""


def submodules(top: Path) -> tuple[str, ...]:
    """Name the folders of a working tree that other repositories fill, below its top, sorted."""
    if not (top / ".gitmodules").is_file():
        return ()
    said = git(top, "config", "--null", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$") or ""
    return tuple(sorted(entry.partition("\n")[2] for entry in said.split("\0") if entry))


class Remote(Struct, frozen=True):
    """Where a repository is published."""

    host: str
    """Its name, with its port where the address has one: `github.com`."""
    path: str
    """Owner and name: `owner/name`."""
    scheme: str = "https"

    @classmethod
    def of(cls, address: str) -> Remote | None:
        """Read a remote's address; None for one that no browser can open, such as a folder or a name of ssh's settings.

        What stands before the host is a name or a password, and is left out.
        """
        return None if alias(address) else _read(address)[0]

    @property
    def url(self) -> str:
        """The address that people open; it never holds what the remote's own address may hold: a user or a token."""
        return f"{self.scheme}://{self.host}/{quote(self.path, safe=_SAFE)}"

    @property
    def forge(self) -> str:
        """Which forge it is, as far as the host's name tells: `github`, `gitlab` or nothing."""
        return next((forge for forge in ("github", "gitlab") if forge in self.host), "")

    @property
    def pages_url(self) -> str:
        """The address at which the forge shows the repository's site; empty where the host's name does not tell."""
        owner, _, name = self.path.partition("/")
        domain = _PAGES.get(self.host)
        if domain is None or not _OWNER.fullmatch(owner):
            return ""
        site = f"{owner.lower()}.{domain}"
        return f"https://{site}/" if name.lower() == site else f"https://{site}/{quote(name, safe=_SAFE)}/"


def alias(address: str) -> str:
    """Give the name by which an address for ssh calls its host, where that is none by which others find it: `work` of `git@work:a/b`."""
    found, is_for_ssh = _read(address)
    return found.host if found and is_for_ssh and not _FULL.search(found.host) else ""


def resolved(address: str) -> str:
    """Give a remote's address by the host that ssh means, where it has a name of a person's own.

    One without a dot of which ssh knows no other name is that of a host nearby; else it stays as it is.
    """
    found, name = _read(address)[0], alias(address)
    host = _host_of(name) if name else ""
    if found is None or not host or (host == name and "." in name):
        return address
    return f"{'https' if host == name else 'ssh'}://{f'[{host}]' if ':' in host else host}/{quote(found.path)}"


def _host_of(name: str) -> str:
    """Ask ssh which host it means by a name, which connects to nothing."""
    try:
        done = subprocess.run(["ssh", "-G", name], capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return ""
    said = done.stdout.decode(errors="replace").splitlines()
    return next((line.removeprefix("hostname ") for line in said if line.startswith("hostname ")), "")


def _read(address: str) -> tuple[Remote | None, bool]:
    """Read an address: where it leads, None for nowhere that has a host; and whether it is for ssh."""
    address = address.strip()
    short = None if "://" in address else _SHORT.fullmatch(address)
    if short is not None:
        path = unquote(short[2]) if _BY_SSH.get(short[1].lower()) == _AZURE else short[2]
        return _checked("https", short[1], "", path), True
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port and parts.scheme.startswith("http") else ""
    except ValueError:
        return None, False
    if parts.scheme not in _SCHEMES or not parts.hostname:
        return None, False
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return _checked("http" if parts.scheme == "http" else "https", host, port, unquote(parts.path)), "ssh" in parts.scheme


def _checked(scheme: str, host: str, port: str, path: str) -> Remote | None:
    host = _BY_SSH.get(host.lower(), host.lower())
    path = path.strip("/").removesuffix(".git").rstrip("/")
    if host == _AZURE:
        path = _AZURE_BY_SSH.sub(r"\1/_git/\2", path)
    is_named = path and path.isprintable() and not _NO_PATH.search(path)
    return Remote(host + port, path, scheme) if is_named and _HOST.fullmatch(host) else None
