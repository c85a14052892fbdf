"""Leases of GPUs between the processes of one machine: locks on files, which the system frees when their holder dies.

Each GPU has a file. A file named `turnstile` keeps the order: who takes what is free passes through it together with others, who waits
for GPUs closes it, so that nobody takes what becomes free before the one who waits has all that it asked for. A file named `counter`
is held for the moment in which GPUs are counted and taken, so that two who take never see each other's half.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import ModuleType, TracebackType
from typing import ClassVar, Self
from urllib.parse import quote

from rankbook.errors import EngineError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:
    fcntl = None

PAUSE = 0.02
"""Seconds between two looks at a lock that others hold."""
MOMENT = 0.1
"""Seconds within which the counter is free again, unless its holder was stopped there."""
VARIABLE = "RANKBOOK_LEASES"
"""Environment variable that names another folder of the locks."""
SHARED = Path("/tmp/rankbook-leases")  # noqa: S108 — made and checked by `_make`
"""Folder that all users of the machine share, whatever their `TMPDIR` is."""

Choose = Callable[[Sequence[str], int], Sequence[str]]
"""Chooses so many of these ids."""


def _first(free: Sequence[str], count: int) -> Sequence[str]:
    return free[:count]


class _Lock:
    """A lock that this process holds: an open file description of its own, so that threads of one process exclude each other too."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        _DESCRIPTORS.add(descriptor)

    def release(self) -> None:
        """Give it back; in a forked child it was never held."""
        if self.descriptor in _DESCRIPTORS:
            _DESCRIPTORS.discard(self.descriptor)
            os.close(self.descriptor)


_DESCRIPTORS: set[int] = set()


def _let_go() -> None:
    """Close the locks of the parent in a forked child, or they would live as long as the child; that does not free the parent's."""
    for descriptor in _DESCRIPTORS:
        with suppress(OSError):
            os.close(descriptor)
    _DESCRIPTORS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


class _InProcess:
    """A lock where the system has none on files: it holds among the threads of this process only."""

    _held: ClassVar[dict[Path, list[_InProcess]]] = {}
    _guard = threading.Lock()

    def __init__(self, path: Path, *, shared: bool) -> None:
        self.path = path
        self.shared = shared

    @classmethod
    def take(cls, path: Path, *, shared: bool) -> _InProcess | None:
        """Take it if nobody is in the way."""
        with cls._guard:
            holders = cls._held.setdefault(path, [])
            if holders and not (shared and all(holder.shared for holder in holders)):
                return None
            holders.append(lock := cls(path, shared=shared))
            return lock

    def release(self) -> None:
        """Give it back."""
        with self._guard:
            self._held[self.path].remove(self)


class Lease:
    """GPUs that are held; ends with `release`, with its `with` block, or with the process.

    Args:
        ids: what is held.
        locks: the locks on it.
    """

    def __init__(self, ids: tuple[str, ...], locks: Sequence[_Lock | _InProcess]) -> None:
        self.ids = ids
        self._locks = list(locks)

    def release(self) -> None:
        """Give them back; a second time does nothing."""
        while self._locks:
            self._locks.pop().release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()


class Leases:
    """The locks of one machine.

    Args:
        folder: where the files are; None for the one that all users of the machine share, or that `RANKBOOK_LEASES` names.
        name: keeps GPUs apart that have the same ids and are not the same.

    Raises:
        EngineError: there is no such folder and it cannot be made, or it is not what it should be.
    """

    def __init__(self, folder: Path | None = None, name: str = "") -> None:
        self.folder = folder or Path(os.environ.get(VARIABLE) or SHARED)
        self.name = name
        if fcntl is not None:
            _make(self.folder)

    @property
    def is_between_processes(self) -> bool:
        """Whether other processes are kept off too; without locks on files only threads of this one are."""
        return fcntl is not None

    def take(
        self, ids: Sequence[str], count: int, *, shared: bool = False, wait: bool | Callable[[], bool] = False, choose: Choose = _first
    ) -> Lease | None:
        """Take so many of these GPUs, all or none.

        Args:
            ids: what to choose from, best first.
            count: GPUs that are wanted.
            shared: let others have the same GPUs that take them shared as well.
            wait: wait for them, ahead of all who come later; a function is asked meanwhile whether to wait on.
            choose: chooses among those that are free.

        Returns:
            The lease; None when there are too few for now, or when waiting was given up.

        Raises:
            EngineError: a lock cannot be made, or more are wanted than there are to choose from.
        """
        if count > len(ids):
            raise EngineError(f"{count} GPUs cannot be leased of {len(ids)}")
        if count == 0:
            return Lease((), ())
        if wait:
            return self._wait(partial(self._take_free, ids, count, choose, shared=shared), wait if callable(wait) else lambda: True)
        with self._held("turnstile", shared=True) as passed, self._held("counter", seconds=MOMENT) as counted:
            return self._take_free(ids, count, choose, shared=shared) if passed and counted else None

    def _wait(self, take: Callable[[], Lease | None], goes_on: Callable[[], bool]) -> Lease | None:
        with self._held("turnstile", goes_on=goes_on) as passed:
            while passed and goes_on():
                if lease := take():
                    return lease
                time.sleep(PAUSE)
        return None

    def _take_free(self, ids: Sequence[str], count: int, choose: Choose, *, shared: bool) -> Lease | None:
        locks: dict[str, _Lock | _InProcess] = {}
        try:
            for key in ids:
                if lock := self._lock(f"gpu-{key}", shared=shared):
                    locks[key] = lock
            if len(locks) < count:
                return None
            chosen = tuple(choose(tuple(locks), count))
            return Lease(chosen, [locks.pop(key) for key in chosen])
        finally:
            for lock in locks.values():
                lock.release()

    @contextmanager
    def _held(self, name: str, *, shared: bool = False, seconds: float = 0.0, goes_on: Callable[[], bool] | None = None) -> Iterator[bool]:
        """Hold a lock meanwhile; False when it was not to be had within these seconds, or as long as waiting for it goes on."""
        end = time.monotonic() + seconds
        lock = self._lock(name, shared=shared)
        while lock is None and (goes_on() if goes_on else time.monotonic() < end):
            time.sleep(PAUSE if goes_on else PAUSE / 20)
            lock = self._lock(name, shared=shared)
        try:
            yield lock is not None
        finally:
            if lock is not None:
                lock.release()

    def _lock(self, name: str, *, shared: bool) -> _Lock | _InProcess | None:
        """Take a lock without waiting for it."""
        path = self.folder / quote("-".join(filter(None, (self.name, name))), safe="")
        if fcntl is None:
            return _InProcess.take(path, shared=shared)
        try:
            return _lock_of(path, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        except OSError as error:
            raise EngineError(f"GPUs cannot be leased: {error.strerror}", where=path) from error


def _lock_of(path: Path, kind: int) -> _Lock | None:
    """Lock the file at a path, and be sure that it is still the file at that path."""
    assert fcntl is not None
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            if _is_at(descriptor, path):
                return _Lock(descriptor)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _open(path: Path) -> int:
    """Open a file for locking, made if need be so that all users can lock it, without following links and without waiting.

    One that is there is opened without `O_CREAT`: in a folder that all can write to, a system may refuse that for another user's file.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    while True:
        with suppress(FileNotFoundError):
            return os.open(path, flags)
        with suppress(FileExistsError):
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
            os.fchmod(descriptor, 0o644)
            return descriptor


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _make(folder: Path) -> None:
    """Make the folder so that all users can lock in it and none can take away another's files."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            folder.mkdir()
            folder.chmod(0o1777)
        if not folder.is_dir() or (folder == SHARED and folder.is_symlink()):
            raise EngineError("GPUs cannot be leased here", where=folder, right=f"it must be a folder, or {VARIABLE} name one")
    except OSError as error:
        raise EngineError(f"GPUs cannot be leased: {error.strerror}", where=folder, right=f"let {VARIABLE} name another folder") from error
