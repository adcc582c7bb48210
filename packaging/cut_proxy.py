"""A network that breaks half-way: an HTTP proxy (CONNECT) that lets a number of bytes through and is gone then.

python packaging/cut_proxy.py BYTES        prints its port; ends itself when it has let them through
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
import threading

BLOCK = 1 << 16


class Proxy:
    """`left`: bytes from the network that may still pass, over all connections."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.lock = threading.Lock()

    def serve(self) -> None:
        """Until everything has passed."""
        listening = socket.create_server(("127.0.0.1", 0))
        print(listening.getsockname()[1], flush=True)
        while True:
            client, _ = listening.accept()
            threading.Thread(target=self.connect, args=(client,), daemon=True).start()

    def connect(self, client: socket.socket) -> None:
        """One tunnel."""
        with client, client.makefile("rb") as lines:
            target = lines.readline().split()[1].decode()
            while lines.readline().strip():
                pass
            host, _, port = target.rpartition(":")
            with socket.create_connection((host, int(port)), 30) as server:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                self.carry(client, server)

    def carry(self, client: socket.socket, server: socket.socket) -> None:
        """Bytes both ways until one side ends."""
        with selectors.DefaultSelector() as ready:
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in ready.select():
                    source: socket.socket = key.fileobj  # type: ignore[assignment]
                    data = source.recv(BLOCK)
                    if not data:
                        return
                    if source is server:
                        self.count(len(data))
                    key.data.sendall(data)

    def count(self, size: int) -> None:
        """End the process, and so every connection, when enough has passed."""
        with self.lock:
            self.left -= size
            if self.left < 0:
                os._exit(0)


if __name__ == "__main__":
    Proxy(int(sys.argv[1])).serve()
