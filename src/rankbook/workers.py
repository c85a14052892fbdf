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
from typing import Any, TypeVar

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
    function: Callable[[Sequence[_Item]], _Result], items: Sequence[_Item], jobs: int, chunk: int = 25
) -> Iterator[tuple[Sequence[_Item], _Result]]:
    """Apply a function to chunks of items in several processes, and yield each chunk with its result, in any order.

    Args:
        function: takes a chunk; it sees all that this process knows, and what it changes is lost.
        items: what the chunks are cut from.
        jobs: processes; with one, all happens here.
        chunk: items of a chunk.

    Raises:
        RankbookError: a process died.
    """
    chunk = max(chunk, -(-len(items) // _MOST_CHUNKS))
    chunks = [items[start : start + chunk] for start in range(0, len(items), chunk)]
    if jobs <= 1 or len(chunks) <= 1:
        for each in chunks:
            yield each, function(each)
        return
    yield from _spread(function, chunks, min(jobs, len(chunks)))


def _spread(
    function: Callable[[Sequence[_Item]], _Result], chunks: list[Sequence[_Item]], jobs: int
) -> Iterator[tuple[Sequence[_Item], _Result]]:
    tickets, tickets_in = os.pipe()
    os.write(tickets_in, b"".join(map(_NUMBER.pack, range(len(chunks)))))
    os.close(tickets_in)
    gc.collect()
    gc.freeze()  # a child's collections do not touch, and so not copy, what it shares
    children: dict[int, int] = {}
    try:
        for _ in range(jobs):
            out, into = os.pipe()
            child = os.fork()
            if child == 0:
                for other in (out, *children):
                    os.close(other)
                _serve(function, chunks, tickets, into)
            os.close(into)
            children[out] = child
        gc.unfreeze()
        os.close(tickets)
        for number, result in _gathered(list(children), len(chunks)):
            yield chunks[number], result
    except BaseException:  # what else they would find is of no use
        for child in children.values():
            os.kill(child, signal.SIGKILL)
        raise
    finally:
        for out, child in children.items():
            os.close(out)
            os.waitpid(child, 0)


def _serve(function: Callable[[Sequence[Any]], Any], chunks: list[Sequence[Any]], tickets: int, into: int) -> None:
    """Work off chunks until none is left; this is the whole life of a child."""
    try:
        gc.disable()
        while ticket := os.read(tickets, _NUMBER.size):
            number = _NUMBER.unpack(ticket)[0]
            try:
                result = (True, function(chunks[number]))
            except Exception as error:  # noqa: BLE001 - the parent raises it
                result = (False, error)
            data = _pickled(result)
            _write(into, _SIZE.pack(number, len(data)) + data)
            gc.enable()
            gc.collect(0)
            gc.disable()
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(1)
    finally:
        os._exit(0)


def _pickled(result: tuple[bool, Any]) -> bytes:
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
