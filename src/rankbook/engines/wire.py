"""Messages between the processes of an engine: JSON objects on a stream socket, with file descriptors beside them."""

from __future__ import annotations

import json
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
        head, descriptors, _, _ = socket.recv_fds(channel, LENGTH.size, MOST_DESCRIPTORS, CLOSE_ON_EXEC)
        head += _exactly(channel, LENGTH.size - len(head))
        body = _exactly(channel, LENGTH.unpack(head)[0])
    except (EOFError, ConnectionError):
        return None
    return json.loads(body), list(descriptors)


def _exactly(channel: socket.socket, size: int) -> bytes:
    parts = []
    while size > 0:
        part = channel.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
