"""Ports of the loopback address."""

import contextlib
import socket

HOST = "127.0.0.1"


def free_port() -> int:
    """Returns a port without a listener."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def is_open(port: int) -> bool:
    """Whether a process accepts connections on the port."""
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1):
        return True
    return False
