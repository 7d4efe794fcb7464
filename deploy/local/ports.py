"""Free ports on 127.0.0.1."""

import socket

from deploy.local.errors import LocalError

LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Distinct ports that nobody listens on at this moment."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind((LOOPBACK, 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def require_free(port: int) -> None:
    """Raise LocalError when somebody listens on the port that the user named."""
    with socket.socket() as probe:
        # Connections of an earlier server in TIME_WAIT do not keep a new one from listening.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            raise LocalError(
                f"PORT={port}: {error.strerror.lower() if error.strerror else error}; "
                f"see who listens there with: ss -ltnp 'sport = :{port}'; "
                "name another port, or leave PORT out and a free one is taken"
            ) from error
