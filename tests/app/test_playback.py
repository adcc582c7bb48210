"""Files as a source: every sample format, the pace, and what is wrong with a file in one sentence."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import numpy as np
import pytest

from app.playback import AHEAD_S, FileSource
from app.source import Feed, SourceError
from engine.messages import Audio
from tests.app.helpers import tone, until


def read(source: FileSource) -> list[Audio]:
    """Everything the source sends when the engine keeps up."""
    sent: list[Audio] = []

    async def run() -> None:
        feed = Feed(sent.append, lambda *_: pytest.fail("a file has no gaps"))
        feed.processed(1e9)
        await source.run(feed)

    asyncio.run(run())
    return sent


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"])
def test_wav_of_every_sample_format(tmp_path: Path, subtype: str) -> None:
    sent = read(FileSource(tone(tmp_path / "a.wav", 1.05, subtype=subtype), fast=True))
    samples = np.concatenate([np.frombuffer(a.pcm, "<f4") for a in sent])
    assert len(samples) == round(1.05 * 16_000)
    assert np.abs(samples).max() == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize(("name", "subtype"), [("a.flac", "PCM_24"), ("a.ogg", "VORBIS"), ("a.wav", "PCM_16")])
@pytest.mark.parametrize(("rate", "channels"), [(8_000, 1), (44_100, 2), (48_000, 6)])
def test_rates_channels_and_containers(tmp_path: Path, name: str, subtype: str, rate: int, channels: int) -> None:
    sent = read(FileSource(tone(tmp_path / name, 0.5, rate, channels, subtype), fast=True))
    assert {(a.sample_rate, a.channels) for a in sent} == {(rate, channels)}
    assert sum(len(a.pcm) for a in sent) == round(0.5 * rate) * channels * 4
    ends = np.cumsum([len(a.pcm) / (4 * channels * rate) for a in sent])
    assert [a.start_s for a in sent] == pytest.approx([0.0, *ends[:-1]])


def test_what_is_not_a_number_becomes_silence(tmp_path: Path) -> None:
    import soundfile

    soundfile.write(tmp_path / "a.wav", np.array([0.5, np.nan, np.inf, -np.inf], "f4"), 16_000, subtype="FLOAT")
    (sent,) = read(FileSource(tmp_path / "a.wav", fast=True))
    assert np.frombuffer(sent.pcm, "<f4").tolist() == [0.5, 0.0, 1.0, -1.0]


def test_real_pace_is_not_faster_than_the_voice(tmp_path: Path) -> None:
    began_s = time.monotonic()
    read(FileSource(tone(tmp_path / "a.wav", 0.6)))
    assert time.monotonic() - began_s >= 0.6


def test_fast_stays_a_bounded_way_ahead_of_the_engine(tmp_path: Path) -> None:
    async def run() -> None:
        feed = Feed(lambda _: None, lambda *_: None)
        running = asyncio.create_task(FileSource(tone(tmp_path / "a.wav", 60.0, 8_000), fast=True).run(feed))
        await until(lambda: feed.sent_s >= AHEAD_S)
        for _ in range(100):
            await asyncio.sleep(0)
        assert feed.sent_s <= AHEAD_S + 0.2
        feed.processed(20.0)
        await until(lambda: feed.sent_s >= 20.0 + AHEAD_S)
        assert not running.done()
        feed.stop()  # also while it waits for room
        await asyncio.wait_for(running, 30)

    asyncio.run(run())


def test_stop_ends_real_pace_at_once(tmp_path: Path) -> None:
    async def run() -> None:
        feed = Feed(lambda _: None, lambda *_: None)
        running = asyncio.create_task(FileSource(tone(tmp_path / "a.wav", 60.0, 8_000)).run(feed))
        await until(lambda: feed.sent_s > 0)
        feed.stop()
        await asyncio.wait_for(running, 30)

    asyncio.run(run())


def test_bad_files_are_one_sentence_each(tmp_path: Path) -> None:
    (tmp_path / "empty.wav").touch()
    (tmp_path / "text.wav").write_text("this is not audio, but it has a good name")
    tone(tmp_path / "nothing.wav", 0.0)
    tone(tmp_path / "whole.wav", 1.0)
    (tmp_path / "head.wav").write_bytes((tmp_path / "whole.wav").read_bytes()[:20])
    for name, words in {
        "none.wav": "There is no file",
        ".": "is a folder",
        "empty.wav": "holds no sound",
        "nothing.wav": "holds no sound",
        "text.wav": "is not an audio file",
        "head.wav": "is not an audio file",
    }.items():
        with pytest.raises(SourceError, match=words) as caught:
            FileSource(tmp_path / name).check()
        assert str(caught.value).count("\n") == 0
        assert str(caught.value).endswith(".")


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = tone(tmp_path / "a.wav")
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(SourceError, match="cannot be read: Permission denied"):
        FileSource(path).check()
