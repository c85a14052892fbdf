"""Lines between a caller and its agents over TCP: messages of JSON, and a secret that both sides prove to know."""

from __future__ import annotations

import json
import os
import socket
import threading
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from types import TracebackType
from typing import Self

from rankbook.engines.wire import Message

SECRET = "RANKBOOK_AGENT_SECRET"  # noqa: S105  the name of the variable
"""Variable that carries the secret to an agent."""
CALL_LIMIT = 30.0
"""Seconds that a call may take."""
PROBES = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": 30_000}
"""How the other side's machine is noticed to be gone, where the system knows the option: within half a minute."""


class Line:
    """One line; any thread may say something, one thread hears.

    Args:
        channel: a connected socket; the line owns it.
    """

    def __init__(self, channel: socket.socket) -> None:
        channel.settimeout(None)
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in PROBES.items():
            if hasattr(socket, name):
                channel.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Its frames and its handshake are what multiprocessing itself speaks between machines; nothing is ever unpickled.
        self._connection = Connection(channel.detach())
        self._lock = threading.Lock()

    def say(self, message: Message) -> None:
        """Say something.

        Raises:
            OSError: the other side has gone.
        """
        data = json.dumps(message).encode()
        with self._lock:
            self._connection.send_bytes(data)

    def hear(self, limit: float) -> Message | None:
        """Wait for a message; None when none comes in that many seconds.

        Raises:
            EOFError: the other side has gone.
            OSError: the line is broken.
        """
        if not self._connection.poll(limit):
            return None
        message: Message = json.loads(self._connection.recv_bytes())
        return message

    def prove_as_caller(self, secret: bytes) -> None:
        """Prove to know the secret, after the agent has.

        Raises:
            multiprocessing.AuthenticationError: the other side does not know it.
        """
        deliver_challenge(self._connection, secret)
        answer_challenge(self._connection, secret)

    def prove_as_agent(self, secret: bytes) -> None:
        """Prove to know the secret, and have the caller prove it.

        Raises:
            multiprocessing.AuthenticationError: the other side does not know it.
        """
        answer_challenge(self._connection, secret)
        deliver_challenge(self._connection, secret)

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def call(host: str, port: int) -> Line:
    """Call the caller back; the secret is taken out of the environment, so that no program sees it.

    Raises:
        OSError: nobody answers there.
        multiprocessing.AuthenticationError: whoever answers does not know the secret.
    """
    secret = os.environ.pop(SECRET, "").encode()
    line = Line(socket.create_connection((host, port), CALL_LIMIT))
    line.prove_as_agent(secret)
    return line
