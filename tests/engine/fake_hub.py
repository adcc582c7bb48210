"""A hub on this machine: one repository, its two API paths and its files with ranges, and faults by script."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LIMIT_S = 60.0  # for a machine under load, not a measure
COMMIT = "c0ffee" * 6 + "c0de"
NAME = "owner/model"
WEIGHTS = bytes(range(256)) * 4096
CONFIG = b'{"model_type": "fake"}'


class FakeHub(ThreadingHTTPServer):
    """`ranges`: of the requests for weights, in order. Faults: see the fields."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.endpoint = f"http://127.0.0.1:{self.server_address[1]}"
        self.files = {"config.json": CONFIG, "model.safetensors": WEIGHTS, "sub/copy.safetensors": WEIGHTS}
        self.ranges: list[str] = []
        self.status: dict[str, tuple[int, str]] = {}  # "api" or "file": status and X-Error-Code
        self.break_after: list[int] = []  # the next answers with weights end after so many bytes
        self.hold_after: int | None = None  # weights stop there until `gate` is open
        self.gate = threading.Event()
        self.knows_ranges = True
        self.damage = False

    def listing(self) -> dict[str, Any]:
        return {"id": NAME, "sha": COMMIT, "siblings": [self._sibling(path) for path in self.files]}

    def _sibling(self, path: str) -> dict[str, Any]:
        data = self.files[path]
        git = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        row: dict[str, Any] = {"rfilename": path, "size": len(data), "blobId": git}
        if path.endswith((".safetensors", ".bin", ".gguf")):
            row["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
        return row


class _Handler(BaseHTTPRequestHandler):
    server: FakeHub

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        prefix = f"/{NAME}/resolve/{COMMIT}/"
        kind = "file" if path.startswith(prefix) else "api"
        if kind in self.server.status:
            status, code = self.server.status[kind]
            self._answer(status, b"", {"X-Error-Code": code} if code else {})
        elif kind == "file":
            self._file(self.server.files[path.removeprefix(prefix)])
        elif path in (f"/api/models/{NAME}", *(f"/api/models/{NAME}/revision/{name}" for name in ("v1", COMMIT))):
            self._answer(200, json.dumps(self.server.listing()).encode(), {"Content-Type": "application/json"})
        else:
            self._answer(404, b"", {"X-Error-Code": "RepoNotFound"})

    def _file(self, data: bytes) -> None:
        hub, asked, start = self.server, self.headers.get("Range", ""), 0
        body, headers, status = data, {}, 200
        if hub.knows_ranges and asked:
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            body, status = data[start:], 206
            headers = {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
        if data is not WEIGHTS:
            self._answer(status, body, headers)
            return
        hub.ranges.append(asked)
        if hub.damage:
            body = bytes(len(body))
        if hub.break_after:
            self._answer(status, body[: hub.break_after.pop(0)], headers, len(body))
        elif hub.hold_after is not None and start < hub.hold_after:
            cut = hub.hold_after - start
            self._answer(status, body[:cut], headers, len(body))
            hub.gate.wait(LIMIT_S)
            self._write(body[cut:])
        else:
            self._answer(status, body, headers)

    def _answer(self, status: int, body: bytes, headers: dict[str, str], length: int | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self._write(body)

    def _write(self, body: bytes) -> None:
        try:
            self.wfile.write(body)
            self.wfile.flush()
        except OSError:
            self.close_connection = True  # the other side has left

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving() -> Iterator[FakeHub]:
    """A hub while the block runs."""
    hub = FakeHub()
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield hub
    finally:
        hub.gate.set()
        hub.shutdown()
        thread.join(LIMIT_S)
        hub.server_close()
