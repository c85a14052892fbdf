"""Ports: two programs that use the same fixed port run at the same time, each in a network of its own, or else one after the other.

A program that names ports or uses `torch.distributed` gets a network namespace: a loopback device with all addresses of this machine, and
nothing else; names are looked up in files only, for no name server can be reached. Where the system allows none, it gets a lease of its
ports, and other programs that name one of them wait. A program that reaches out, for a download say, stays on the machine's network, with
a lease.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import socket
import struct
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

SWITCH = "RANKBOOK_NETWORK"
"""Variable: with `host`, programs stay on the machine's network."""
NAMESPACE, LEASE = "network namespace", "port lease"

_PORT = re.compile(
    r"""(?ix)
    port \w* ["'\])\s]* (?:[:=,]|\s)\s* (?:str\()? ["']? (\d{4,5})\b   # MASTER_PORT="6789", --master-port 29500, os.environ["PORT"] = "1"
    | tcp://[^\s"':/]+:(\d{4,5})\b
    | TCPStore\( \s* [^,()]+, \s* (\d{4,5})\b
    """
)
_IMPLIED = {
    "torchrun": 29500,
    "torch.distributed.run": 29500,
    "torch.distributed.launch": 29500,
    "DynamoDistributedSingleProcTestCase": 12355,
    "DynamoDistributedMultiProcTestCase": 6789,
}
"""Ports that programs use without naming them: the launcher's, and those of torch's harnesses."""
_RANKS = re.compile(r"torch\.distributed|torch\.testing\._internal|common_distributed")
_OUTWARD = re.compile(
    r"download\s*=\s*True|urlopen|urlretrieve|\brequests\.(?:get|post|Session)|httpx|from_pretrained|hf_hub|load_dataset\(|hub\.load|"
    r"load_state_dict_from_url|\b(?:pip3?|apt|apt-get|conda) install|"
    r"\b(?:wget|curl|ssh) |\bgit (?:clone|fetch|pull)|\bray\."
)
"""What needs the network outside."""

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
_BIND, _SLAVE_ALL = 0x1000, 0x80000 | 0x4000
_NAMES = Path("/etc/nsswitch.conf")
_HOSTS = re.compile(r"^[ \t]*hosts:.*$", re.MULTILINE)
_LOCAL = frozenset({"files", "db", "compat", "myhostname", "mymachines"})
"""Services that know names without a network."""
_GET_ADDRESSES, _SET_ADDRESS, _GET_FLAGS, _SET_FLAGS = 0x8912, 0x8916, 0x8913, 0x8914
_UP_AND_RUNNING = 0x41
_REQUEST, _ADDRESS = struct.Struct("16s24s"), struct.Struct("=H2s4s8x")
_MOST_ADDRESSES = 64


def ports_of(text: str) -> frozenset[int]:
    """Find the fixed ports that a program names, or that what it uses has."""
    named = (int(next(filter(None, match))) for match in _PORT.findall(text))
    implied = (port for name, port in _IMPLIED.items() if name in text)
    return frozenset(port for port in (*named, *implied) if 1024 <= port <= 65535)


def wants_namespace(text: str) -> bool:
    """Whether a program is better off in a network of its own."""
    return bool(_RANKS.search(text) or ports_of(text)) and not _OUTWARD.search(text)


class Isolation:
    """How one program is kept apart from others.

    Args:
        text: the program's text.
        arguments: of the program: `network` may be `host` or `own`, `ports` a list of the ports that it uses.
        environment: of the program.
    """

    def __init__(self, text: str, arguments: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        network = arguments.get("network") or environment.get(SWITCH) or ""
        self.ports = frozenset(arguments.get("ports") or ports_of(text))
        self._own = network == "own" or (network != "host" and wants_namespace(text))
        self._locks: list[int] = []

    def enter(self, wait: Callable[[], bool], folder: str) -> str:
        """Put this process, which has one thread, and its future children apart; says how.

        Args:
            wait: called while another program has one of the ports; False gives up.
            folder: a private one of the program.
        """
        if self._own and (flags := allowed()):
            _unshare(flags)
            with contextlib.suppress(OSError):  # a warning more, and nothing else
                _look_up_names_in_files(Path(folder, _NAMES.name))
            return NAMESPACE
        if not self.ports:
            return ""
        return LEASE if self._lease(wait) else ""

    def _lease(self, wait: Callable[[], bool]) -> bool:
        with contextlib.suppress(OSError):
            folder = Path(_common_folder(), f"rankbook-ports-{os.getuid()}")
            folder.mkdir(mode=0o700, exist_ok=True)
            for port in sorted(self.ports):  # all in the same order: nobody waits in a circle
                lock = os.open(folder / str(port), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                self._locks.append(lock)
                while not _try_lock(lock):
                    if not wait():
                        return False
            return True
        return False

    def forget(self) -> None:
        """Let go, in a child, of the leases: they are the supervisor's."""
        for lock in self._locks:
            os.close(lock)


def _common_folder() -> str:
    """Give a folder that all programs of this machine have in common, whatever TMPDIR they were given."""
    common = "/tmp"  # noqa: S108
    return common if os.access(common, os.W_OK) else tempfile.gettempdir()


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_allowed: list[int] = []


def allowed() -> int:
    """Give the flags by which this process may have a network of its own, 0 when by none; found once, in a child."""
    if not _allowed:
        kinds = (CLONE_NEWNET, CLONE_NEWUSER | CLONE_NEWNET) if sys.platform == "linux" else ()
        _allowed.append(next((flags for flags in kinds if _works(flags)), 0))
    return _allowed[0]


def _works(flags: int) -> bool:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            _unshare(flags)
            with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), 1):
                status = 0
        except BaseException:  # noqa: BLE001  whatever is wrong, the answer is no
            status = 1
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1] == 0


def _unshare(flags: int) -> None:
    user, group = os.getuid(), os.getgid()
    addresses = _addresses()
    _checked("unshare", flags)
    if flags & CLONE_NEWUSER:
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        _start(channel, "lo")
        # A host's name may stand for an address of a network device: the loopback device takes it.
        for number, address in enumerate(addresses):
            with contextlib.suppress(OSError):
                packed = _ADDRESS.pack(socket.AF_INET, b"", address)
                fcntl.ioctl(channel, _SET_ADDRESS, _REQUEST.pack(f"lo:{number}".encode(), packed))


def _checked(function: str, *arguments: object) -> None:
    """Call a function of the C library that gives 0 when all is well."""
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, function)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{function} is not allowed")


def _look_up_names_in_files(own: Path) -> None:
    """Have this process and its children ask no name server: torch warns at each connection that none answers.

    Args:
        own: where the file goes that stands in for the system's, for them only.
    """
    own.write_text(local_names(_NAMES.read_text(encoding="utf-8")), encoding="utf-8")
    _checked("unshare", CLONE_NEWNS)
    _checked("mount", b"none", b"/", None, ctypes.c_ulong(_SLAVE_ALL), None)  # what is mounted here is not to be seen by others
    _checked("mount", bytes(own), bytes(_NAMES), None, ctypes.c_ulong(_BIND), None)


def local_names(services: str) -> str:
    """Leave the services that need a network out of how hosts are looked up, with what is said of their answers.

    Args:
        services: text of `nsswitch.conf`.
    """
    line = _HOSTS.search(services)
    known = [word for word in line[0].partition("#")[0].split()[1:] if word in _LOCAL] if line else []
    hosts = f"hosts: {' '.join(known or ['files'])}"
    return _HOSTS.sub(hosts, services) if line else f"{services.rstrip()}\n{hosts}\n"


def _start(channel: socket.socket, device: str) -> None:
    request = struct.Struct("16sH22x")
    _, flags = request.unpack(fcntl.ioctl(channel, _GET_FLAGS, request.pack(device.encode(), 0)))
    fcntl.ioctl(channel, _SET_FLAGS, request.pack(device.encode(), flags | _UP_AND_RUNNING))


def _addresses() -> list[bytes]:
    """Give this machine's own IPv4 addresses, but those of the loopback device."""
    room = ctypes.create_string_buffer(_REQUEST.size * _MOST_ADDRESSES)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        answer = fcntl.ioctl(channel, _GET_ADDRESSES, struct.pack("iP", len(room), ctypes.addressof(room)))
    (size,) = struct.unpack_from("i", answer)
    entries = (room.raw[start : start + _REQUEST.size] for start in range(0, size, _REQUEST.size))
    return [address for address in (entry[20:24] for entry in entries) if address[:1] != b"\x7f"]
