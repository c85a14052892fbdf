"""Work spread over processes that share what this one knows: each is a fork, and is sent nothing but the numbers of its chunks."""

from __future__ import annotations

import gc
import os
import pickle
import selectors
import signal
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self, TypeVar

from rankbook.errors import RankbookError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_NUMBER = struct.Struct("<I")
_SIZE = struct.Struct("<II")
"""Number of the chunk and bytes of its result."""
_MOST_CHUNKS = 8000
"""Chunk numbers that fit into a pipe at once."""


def processes(jobs: int) -> int:
    """Give the number of processes to use: as asked, or one per core; one where forking is not safe, because this process has threads."""
    return 1 if threading.active_count() > 1 else jobs or len(os.sched_getaffinity(0))


def spread(
    function: Callable[[Sequence[_Item]], _Result],
    items: Sequence[_Item],
    jobs: int,
    chunk: int = 25,
    meanwhile: Callable[[], object] | None = None,
) -> Iterator[tuple[Sequence[_Item], _Result]]:
    """Apply a function to chunks of items in several processes, and yield each chunk with its result, in any order.

    Args:
        function: takes a chunk; it sees all that this process knows, and what it changes is lost.
        items: what the chunks are cut from.
        jobs: processes; with one, all happens here.
        chunk: items of a chunk.
        meanwhile: what this process does while the others work; what it raises ends them.

    Raises:
        RankbookError: a process died.
    """
    chunk = max(chunk, -(-len(items) // _MOST_CHUNKS))
    chunks = [items[start : start + chunk] for start in range(0, len(items), chunk)]
    do = meanwhile or (lambda: None)
    if jobs <= 1 or len(chunks) <= 1:
        do()
        for each in chunks:
            yield each, function(each)
        return
    with _Crew(function, chunks, min(jobs, len(chunks))) as crew:
        do()
        for number, result in crew.results():
            yield chunks[number], result


@contextmanager
def beside(function: Callable[[], object], jobs: int) -> Iterator[None]:
    """Run a function in a process of its own while the block runs, and wait for its end; with one job, run it after the block.

    Args:
        function: it sees all that this process knows, and what it changes is lost.
        jobs: processes that may run.

    Raises:
        RankbookError: the process died.
    """
    if jobs <= 1:
        yield
        function()
        return
    with _Crew(lambda _: function(), [()], 1) as crew:
        yield
        for _ in crew.results():
            pass


class _Crew:
    """Processes that work off chunks; an error ends them.

    Args:
        function: takes a chunk.
        chunks: for all of them.
        jobs: their number.
    """

    def __init__(self, function: Callable[[Sequence[Any]], object], chunks: Sequence[Sequence[Any]], jobs: int) -> None:
        self._expected = len(chunks)
        self._children: dict[int, int] = {}
        """By the end of the pipe that a child's results come from."""
        tickets, tickets_in = os.pipe()
        os.write(tickets_in, b"".join(map(_NUMBER.pack, range(len(chunks)))))
        os.close(tickets_in)
        try:
            for _ in range(jobs):
                self._add(function, chunks, tickets)
        except BaseException:
            self._end(is_wanted=False)
            raise
        finally:
            os.close(tickets)

    def _add(self, function: Callable[[Sequence[Any]], object], chunks: Sequence[Sequence[Any]], tickets: int) -> None:
        out, into = os.pipe()
        child = os.fork()
        if child == 0:
            for other in (out, *self._children):
                os.close(other)
            _serve(function, chunks, tickets, into)
        os.close(into)
        self._children[out] = child

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._end(is_wanted=kind is None)

    def results(self) -> Iterator[tuple[int, Any]]:
        """Give the number and the result of each chunk, in any order."""
        return _gathered(list(self._children), self._expected)

    def _end(self, *, is_wanted: bool) -> None:
        if not is_wanted:  # what else they would find is of no use
            for child in self._children.values():
                os.kill(child, signal.SIGKILL)
        for out, child in self._children.items():
            os.close(out)
            os.waitpid(child, 0)


def _serve(function: Callable[[Sequence[Any]], object], chunks: Sequence[Sequence[Any]], tickets: int, into: int) -> None:
    """Work off chunks until none is left; this is the whole life of a child."""
    try:
        gc.disable()  # a child makes next to no cycles; to look for some takes time, and copies what it shares
        while ticket := os.read(tickets, _NUMBER.size):
            number = _NUMBER.unpack(ticket)[0]
            try:
                result = (True, function(chunks[number]))
            except Exception as error:  # noqa: BLE001 - the parent raises it
                result = (False, error)
            data = _pickled(result)
            _write(into, _SIZE.pack(number, len(data)) + data)
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(1)
    finally:
        os._exit(0)


def _pickled(result: tuple[bool, object]) -> bytes:
    try:
        return pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
    except Exception:  # noqa: BLE001 - an error that does not travel is told in words
        return pickle.dumps((False, RankbookError(f"{type(result[1]).__name__}: {result[1]}")))


def _write(into: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(into, view) :]


def _gathered(outs: list[int], expected: int) -> Iterator[tuple[int, Any]]:
    buffers = {out: bytearray() for out in outs}
    with selectors.DefaultSelector() as selector:
        for out in outs:
            selector.register(out, selectors.EVENT_READ)
        while expected:
            if not selector.get_map():
                raise RankbookError("a worker process died", right="run again, or with --jobs 1")
            for key, _ in selector.select():
                data = os.read(key.fd, 1 << 20)
                if not data:
                    selector.unregister(key.fd)
                buffers[key.fd] += data
                for number, result in _complete(buffers[key.fd]):
                    expected -= 1
                    yield number, _opened(result)


def _complete(buffer: bytearray) -> Iterator[tuple[int, bytes]]:
    while len(buffer) >= _SIZE.size:
        number, size = _SIZE.unpack_from(buffer)
        end = _SIZE.size + size
        if len(buffer) < end:
            return
        data = bytes(buffer[_SIZE.size : end])
        del buffer[:end]
        yield number, data


def _opened(data: bytes) -> Any:
    done, value = pickle.loads(data)  # noqa: S301 - our own child wrote it
    if not done:
        raise value
    return value
