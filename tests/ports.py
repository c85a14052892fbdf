"""Ports for servers that are told theirs: none that the system gives to whoever asks for any."""

from __future__ import annotations

import itertools
import os
import socket

_FIRST, _EACH = 20_000, 1_000
"""Below the ports that Linux gives away by itself, which begin at 32,768, and below those of torch; workers of xdist share none."""
_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 9
_counted = itertools.count(os.getpid() % _EACH)


def free_port() -> int:
    """Give a port that nobody has now, and that nobody gets unless by its number."""
    while True:
        port = _FIRST + _worker * _EACH + next(_counted) % _EACH
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
