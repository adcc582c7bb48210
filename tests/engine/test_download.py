"""Downloads from a hub on this machine: whole, resumed, paused, cancelled, and one sentence for what is in the way."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest

from engine import download as module
from engine.download_control import DownloadControl, controlled_by
from engine.messages import Configure, Download, DownloadProgress, Error, Event, Loading
from engine.models import ModelError, resolve
from tests.engine.child import Engine, wait_for
from tests.engine.fake_hub import COMMIT, CONFIG, LIMIT_S, NAME, WEIGHTS, FakeHub, serving

pytest.importorskip("huggingface_hub")

ROOT = Path(__file__).resolve().parents[2]
HALF = len(WEIGHTS) // 2


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    from huggingface_hub import close_session, constants

    with serving() as hub:
        for name, value in {
            "HF_HUB_CACHE": str(tmp_path / "hub"),
            "HF_HOME": str(tmp_path / "home"),
            "HF_ENDPOINT": hub.endpoint,
            "NO_PROXY": "127.0.0.1",
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(module, "RETRY_S", 0.001)
        monkeypatch.setattr(module, "TELL_S", 0.0)
        yield hub
        close_session()


@pytest.fixture
def blobs(tmp_path: Path) -> Path:
    return tmp_path / "hub" / "models--owner--model" / "blobs"


class Running:
    """A download on a thread of its own, with what it says."""

    def __init__(self) -> None:
        self.said: SimpleQueue[DownloadProgress] = SimpleQueue()
        self.control = DownloadControl(self.said.put)
        self.path: Path | None = None
        self.error = ""
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with controlled_by(self.control):
                self.path = resolve(NAME)
        except ModelError as error:
            self.error = str(error)

    def until(self, true: Callable[[DownloadProgress], bool]) -> DownloadProgress:
        while not true(event := self.said.get(timeout=LIMIT_S)):
            pass
        return event

    def finish(self) -> None:
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive()


def size(path: Path) -> int:
    return path.stat().st_size


def whole(folder: Path) -> bool:
    return (
        (folder / "config.json").read_bytes() == CONFIG
        and (folder / "model.safetensors").read_bytes() == WEIGHTS
        and (folder / "sub" / "copy.safetensors").read_bytes() == WEIGHTS
    )


@pytest.mark.parametrize("revision", ["v1", COMMIT])
def test_a_pinned_revision_is_asked_for_and_then_known(hub: FakeHub, blobs: Path, revision: str) -> None:
    pinned = f"{NAME}@{revision}"
    assert resolve(pinned) == blobs.parent / "snapshots" / COMMIT
    hub.status["api"] = (500, "")
    assert resolve(pinned) == blobs.parent / "snapshots" / COMMIT
    assert not (blobs.parent / "refs" / "main").exists()


def test_a_model_is_downloaded_once_and_then_needs_no_hub(hub: FakeHub, blobs: Path) -> None:
    events: list[DownloadProgress] = []
    told: list[float] = []
    with controlled_by(DownloadControl(events.append)):
        folder = resolve(NAME, lambda fraction, text: told.append(fraction))
    assert whole(folder)
    assert folder == blobs.parent / "snapshots" / COMMIT
    assert len(list(blobs.iterdir())) == 2, "equal files are one blob"
    assert hub.ranges == ["bytes=0-"]
    total = len(WEIGHTS) + len(CONFIG)
    done = [event.done_bytes for event in events]
    assert done == sorted(done)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert events[-1] == DownloadProgress(NAME, total, total, "done")
    assert {event.state for event in events[:-1]} == {"running"}
    hub.status["api"] = (500, "")
    assert resolve(NAME) == folder


def test_a_tag_is_noted_under_its_name(hub: FakeHub, blobs: Path) -> None:
    control = DownloadControl()
    folder = module.download(NAME, blobs.parent, lambda fraction, text: None, control, "v1", hub.endpoint)
    assert whole(folder)
    assert (blobs.parent / "refs" / "v1").read_text() == COMMIT
    assert not (blobs.parent / "refs" / "main").exists()


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_connection_goes_on_where_it_broke(hub: FakeHub, ranges: bool) -> None:
    hub.break_after, hub.knows_ranges = [HALF, 0], ranges
    assert whole(resolve(NAME))
    assert hub.ranges == ["bytes=0-", f"bytes={HALF}-", f"bytes={HALF if ranges else 0}-"]


def test_a_connection_that_never_holds_is_given_up_and_gone_on_with_later(hub: FakeHub, blobs: Path) -> None:
    hub.break_after = [HALF] + [0] * (module.ATTEMPTS - 1)
    with pytest.raises(ModelError, match=r"owner/model broke off .* is kept, check the network"):
        resolve(NAME)
    (part,) = blobs.glob("*.incomplete")
    assert part.stat().st_size == HALF
    assert whole(resolve(NAME))
    assert hub.ranges[-1] == f"bytes={HALF}-"


def test_a_killed_download_goes_on(hub: FakeHub, blobs: Path) -> None:
    hub.hold_after = HALF
    program = f"from engine.models import resolve; resolve({NAME!r})"
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT) as child:
        try:
            wait_for(
                lambda: hub.ranges == ["bytes=0-"] and sum(map(size, blobs.glob("*.incomplete"))) > 0, "bytes arrive"
            )
        finally:
            child.kill()
    (part,) = blobs.glob("*.incomplete")
    arrived = part.stat().st_size
    hub.gate.set()
    assert whole(resolve(NAME))
    assert hub.ranges == ["bytes=0-", f"bytes={arrived}-"]


def test_pause_and_resume(hub: FakeHub) -> None:
    hub.hold_after = HALF
    running = Running()
    running.until(lambda event: event.done_bytes > len(CONFIG))
    assert running.control.act("pause")
    hub.gate.set()
    paused = running.until(lambda event: event.state == "paused")
    assert 0 < paused.done_bytes < paused.total_bytes
    assert running.said.empty()
    assert running.control.act("resume")
    running.until(lambda event: event.state == "done")
    running.finish()
    assert running.path is not None
    assert whole(running.path)
    assert hub.ranges == ["bytes=0-", f"bytes={paused.done_bytes - len(CONFIG)}-"]
    assert not running.control.act("pause")


@pytest.mark.parametrize("first", ["pause", "nonsense"])
def test_cancel_leaves_nothing(hub: FakeHub, blobs: Path, first: str) -> None:
    hub.hold_after = HALF
    running = Running()
    running.until(lambda event: event.done_bytes > len(CONFIG))
    running.control.act(first)
    if first == "pause":
        hub.gate.set()
        running.until(lambda event: event.state == "paused")
    running.control.act("cancel")
    hub.gate.set()
    running.until(lambda event: event.state == "cancelled")
    running.finish()
    assert (
        running.error
        == "The download of owner/model was cancelled: load the preset again to start it, or choose another."
    )
    assert list(blobs.iterdir()) == []
    assert whole(resolve(NAME))


def test_an_engine_that_leaves_keeps_what_has_arrived(hub: FakeHub, blobs: Path) -> None:
    hub.hold_after = HALF
    running = Running()
    running.until(lambda event: event.done_bytes > len(CONFIG))
    running.control.leave()
    hub.gate.set()
    running.finish()
    assert "goes on the next time" in running.error
    (part,) = blobs.glob("*.incomplete")
    assert part.stat().st_size > 0


def test_damaged_weights_are_removed_and_said(hub: FakeHub, blobs: Path) -> None:
    hub.damage = True
    with pytest.raises(ModelError, match=r"model\.safetensors of owner/model arrived damaged"):
        resolve(NAME)
    assert not list(blobs.glob("*.incomplete"))
    hub.damage = False
    assert whole(resolve(NAME))


@pytest.mark.parametrize(
    ("where", "status", "code", "sentence"),
    [
        ("file", 403, "GatedRepo", "accepted their terms: accept them at {endpoint}/owner/model, then log in"),
        ("file", 401, "GatedRepo", "accepted their terms: accept them at {endpoint}/owner/model, then log in"),
        ("api", 403, "", "accepted their terms: accept them at {endpoint}/owner/model"),
        ("api", 401, "", "shows no model owner/model: check the name, or, if {endpoint}/owner/model asks for it"),
        ("api", 404, "RepoNotFound", "has no model owner/model, or not all of it: look at {endpoint}/owner/model"),
        ("file", 404, "EntryNotFound", "has no model owner/model, or not all of it"),
        ("api", 500, "", "it answered 500"),
        ("file", 503, "", "broke off (the hub answered 503)"),
    ],
)
def test_what_the_hub_refuses(hub: FakeHub, where: str, status: int, code: str, sentence: str) -> None:
    hub.status[where] = (status, code)
    with pytest.raises(ModelError) as error:
        resolve(NAME)
    assert sentence.format(endpoint=hub.endpoint) in str(error.value)


def test_a_hub_that_cannot_be_reached(hub: FakeHub, blobs: Path) -> None:
    nowhere = "http://127.0.0.1:1"
    with pytest.raises(ModelError, match=r"http://127\.0\.0\.1:1 cannot be reached .*: check the network"):
        module.download(NAME, blobs.parent, lambda fraction, text: None, DownloadControl(), endpoint=nowhere)


def test_offline_mode_asks_nobody(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match="HF_HUB_OFFLINE forbids downloading"):
        resolve(NAME)


def test_too_little_room_is_said_before(hub: FakeHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=40_000))
    with pytest.raises(ModelError, match="1 MB are needed and 0 MB are free; make room"):
        resolve(NAME)
    assert hub.ranges == []


def test_another_program_that_downloads_the_same(hub: FakeHub, blobs: Path) -> None:
    hub.hold_after = HALF
    running = Running()
    running.until(lambda event: event.done_bytes > len(CONFIG))
    with pytest.raises(ModelError, match="Another program is downloading owner/model"):
        resolve(NAME)
    hub.gate.set()
    running.finish()
    assert running.path is not None


def test_weights_in_a_second_format_are_left_out(hub: FakeHub) -> None:
    hub.files["pytorch_model.bin"] = b"the same again"
    assert not (resolve(NAME) / "pytorch_model.bin").exists()


@pytest.mark.parametrize("path", ["../escape.json", "/etc/escape", "a\\b"])
def test_a_file_outside_the_folder_is_refused(hub: FakeHub, path: str) -> None:
    hub.files[path] = b"{}"
    with pytest.raises(ModelError, match="list of the files of owner/model cannot be used"):
        resolve(NAME)


def test_one_of_many_gguf_files_is_the_persons_choice(hub: FakeHub) -> None:
    hub.files = {"a-q4.gguf": b"GGUF1", "a-q8.gguf": b"GGUF2"}
    with pytest.raises(ModelError, match="several GGUF files"):
        resolve(NAME)


def test_commands_reach_the_download_of_an_engine_that_loads(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    hub.hold_after = HALF
    engine = Engine()
    try:
        engine.send(Download("pause"))
        assert engine.next(Error).code == "no_download"
        engine.send(Configure("laptop", "en", "de", overrides={"recogniser.model": NAME}))
        wait_for(lambda: bool(hub.ranges), "weights are asked for")
        engine.send(Download("pause"))
        engine.commands.put("nonsense")  # its answer says that the command before it was heard
        heard = {"protocol": False, "paused": False}
        while not all(heard.values()):
            event = engine.next(Event)
            if isinstance(event, Error):
                heard[event.code] = True
                hub.gate.set()
            elif isinstance(event, DownloadProgress):
                heard["paused"] |= event.state == "paused"
        engine.send(Download("cancel"))
        assert engine.next(DownloadProgress).state == "cancelled"
        assert engine.next(Error).message.startswith("The download of owner/model was cancelled")
        assert any(isinstance(event, Loading) and "Downloading" in event.text for event in engine.heard)
        assert engine.leave() == 0
    finally:
        engine.close()
