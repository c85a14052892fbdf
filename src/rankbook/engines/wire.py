"""Messages between the processes of an engine: JSON objects on a stream socket, with file descriptors beside them."""

from __future__ import annotations

import array
import json
import os
import socket
import struct
from collections.abc import Sequence
from typing import Any

LENGTH = struct.Struct("!Q")
MOST_DESCRIPTORS = 200
"""In one message; Linux allows 253."""
CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)

Message = dict[str, Any]


def send(channel: socket.socket, message: Message, descriptors: Sequence[int] = ()) -> None:
    """Send one message; the descriptors travel with its first bytes."""
    body = json.dumps(message).encode()
    head = LENGTH.pack(len(body))
    if descriptors:
        socket.send_fds(channel, [head], list(descriptors))
    else:
        channel.sendall(head)
    channel.sendall(body)


def receive(channel: socket.socket) -> tuple[Message, list[int]] | None:
    """Wait for one message; None when the other side has gone."""
    try:
        head, descriptors = _with_descriptors(channel, LENGTH.size, CLOSE_ON_EXEC)
        head += _exactly(channel, LENGTH.size - len(head))
        body = _exactly(channel, LENGTH.unpack(head)[0])
    except (EOFError, ConnectionError):
        return None
    return json.loads(body), descriptors


def _with_descriptors(channel: socket.socket, size: int, flags: int) -> tuple[bytes, list[int]]:
    # Not `socket.recv_fds`: it passes its flags over.
    received = array.array("i")
    data, ancillary, _, _ = channel.recvmsg(size, socket.CMSG_LEN(MOST_DESCRIPTORS * received.itemsize), flags)
    for level, kind, body in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            received.frombytes(body[: len(body) - len(body) % received.itemsize])
    return data, list(received)


MOST_TOLD = 2000
"""Bytes of a note; more would not pass a datagram socket everywhere."""


def tell(notes: int, message: Message, descriptors: Sequence[int] = ()) -> None:
    """Send a note, whole or not at all, through a datagram socket that other processes share."""
    with socket.socket(fileno=os.dup(notes)) as channel:
        channel.settimeout(None)  # the program may have set a default timeout
        body = json.dumps(message).encode()
        if descriptors:
            socket.send_fds(channel, [body], list(descriptors))
        else:
            channel.sendall(body)


def hear(channel: socket.socket) -> tuple[Message, list[int]] | None:
    """Take one note; None when there is none now, or it is no note."""
    try:
        body, descriptors = _with_descriptors(channel, MOST_TOLD, CLOSE_ON_EXEC | socket.MSG_DONTWAIT)
        return json.loads(body), descriptors
    except (OSError, ValueError):
        return None


def _exactly(channel: socket.socket, size: int) -> bytes:
    parts = []
    while size > 0:
        part = channel.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
