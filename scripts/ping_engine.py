"""Exit code 0 if a Docker engine answers at DOCKER_HOST or the default socket; needs nothing installed."""

import os
import socket
import sys
from urllib.parse import urlsplit


def connect(address: str) -> socket.socket:
    """Connect to an address in the form of DOCKER_HOST (unix:// or tcp://)."""
    parts = urlsplit(address)
    if parts.scheme == "unix":
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(5)
        connection.connect(parts.path)
        return connection
    return socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 2375), 5)


def main() -> int:
    """Ping the engine; with TLS, only check that something listens."""
    try:
        with connect(os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock") as connection:
            if os.environ.get("DOCKER_TLS_VERIFY"):
                return 0
            connection.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
            return 0 if b" 200 " in connection.recv(64) else 1
    except OSError:
        return 1


if __name__ == "__main__":
    sys.exit(main())
