"""What an adapter says of itself, and everything that is refused before a model is loaded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.mt.adapter import GGUF, SAFETENSORS, load_adapter
from engine.mt.contract import TranslationError
from tests.engine.mt.adapters import GEMMA_SHA256, describe

OTHER_SHA256 = "0123456789abcdef" * 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An adapter whose files hold no adapter: nothing in here reads them."""
    (tmp_path / GGUF).write_bytes(b"one")
    (tmp_path / SAFETENSORS).write_bytes(b"other")
    describe(tmp_path, rank=24, alpha=48.0)
    return tmp_path


def refused(*call: object) -> str:
    function, *arguments = call
    with pytest.raises(TranslationError) as caught:
        function(*arguments)  # type: ignore[operator]
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


def test_what_it_says(folder: Path) -> None:
    adapter = load_adapter(str(folder))
    assert (adapter.name, adapter.prompt, adapter.rank, adapter.scale) == ("random", "talks", 24, 2.0)
    assert adapter.pairs == ("en-de", "en-fr", "en-es", "en-it")
    adapter.check_pair("en", "de")
    adapter.check_base(Path("gemma.gguf"), GEMMA_SHA256)
    assert adapter.file(GGUF) == folder / GGUF
    assert adapter.file(SAFETENSORS) == folder / SAFETENSORS


def test_a_shipped_one_goes_by_name(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = tmp_path / "resources"
    (shipped / "adapters").mkdir(parents=True)
    (shipped / "adapters" / "talks").symlink_to(folder)
    monkeypatch.setattr("engine.mt.adapter.resources", lambda: shipped)
    assert load_adapter("talks").rank == 24
    message = refused(load_adapter, "tolks")
    assert "no adapter 'tolks'" in message
    assert "or one of talks" in message


def test_other_weights_are_named_with_both_checksums(folder: Path) -> None:
    message = refused(load_adapter(str(folder)).check_base, Path("/models/other.gguf"), OTHER_SHA256)
    assert GEMMA_SHA256[:12] in message
    assert OTHER_SHA256[:12] in message
    assert "/models/other.gguf" in message
    assert "is no such file" in refused(load_adapter(str(folder)).check_base, Path("/models/folder"), "")


def test_a_pair_outside_its_list(folder: Path) -> None:
    message = refused(load_adapter(str(folder)).check_pair, "en", "cs")
    assert "does not translate en-cs, only en-de, en-fr, en-es, en-it" in message


@pytest.mark.parametrize("name", [GGUF, SAFETENSORS])
def test_a_damaged_file(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"torn")
    assert re.search(
        rf"{name} is damaged \(sha256 \w{{12}}…, expected \w{{12}}…\)", refused(load_adapter(str(folder)).file, name)
    )


def test_a_file_that_is_not_there(folder: Path) -> None:
    (folder / GGUF).unlink()
    assert "cannot be read (No such file or directory)" in refused(load_adapter(str(folder)).file, GGUF)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("rank = 0", "not valid at 'rank'"),
        ("alpha = -1.0", "not valid at 'alpha'"),
        ('layout = "poem-3"', "needs the prompt layout 'poem-3', but this program has few_shot-1, talks-1, chat-1"),
        ('gguf_sha256 = "abc"', "not valid at 'gguf_sha256'"),
        ("languages = []", "not valid at 'languages'"),
        ("rank = ", "not valid: "),
    ],
)
def test_a_description_that_is_wrong(folder: Path, line: str, said: str) -> None:
    path = folder / "adapter.toml"
    key = line.split(" = ")[0]
    path.write_text(re.sub(rf"^{key} = .*$", line, path.read_text(encoding="utf-8"), flags=re.MULTILINE), "utf-8")
    assert said in refused(load_adapter, str(folder))


def test_a_description_that_lacks_something(folder: Path) -> None:
    path = folder / "adapter.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("rank = 24\n", ""), encoding="utf-8")
    assert "not valid at 'rank': Field required" in refused(load_adapter, str(folder))
