"""An audio file as a source: at the pace of real time like a microphone, or as fast as the engine listens."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np

from app.source import Feed, SourceError

BLOCK_S = 0.1
AHEAD_S = 8.0  # fast: audio that may lie unheard in the engine


class FileSource:
    """Plays wav, flac, ogg and what else libsndfile reads: any sample format, rate and channel count."""

    def __init__(self, path: Path, *, fast: bool = False) -> None:
        self._path, self._fast = path, fast

    @property
    def name(self) -> str:
        return self._path.name

    @property
    def fast(self) -> bool:
        return self._fast

    @property
    def live(self) -> bool:
        return not self._fast

    def check(self) -> None:
        """Raises `SourceError` unless the file is there, readable, audio, and not empty."""
        with self._open():
            pass

    async def run(self, feed: Feed) -> None:
        """Play to the end or until the feed is stopped.

        Raises `SourceError` when reading fails on the way.
        """
        loop = asyncio.get_running_loop()
        with self._open() as file:
            rate: int = file.samplerate
            began_s, sent = loop.time(), 0
            while not feed.stopped:
                block = self._read(file, max(1, round(rate * BLOCK_S)))
                if not len(block):
                    return
                if self._fast:
                    await feed.room(AHEAD_S)
                    await asyncio.sleep(0)
                else:  # a block is there when its last sample has been spoken
                    await feed.pause(began_s + (sent + len(block)) / rate - loop.time())
                if not feed.stopped:
                    feed.send(block, rate, sent / rate)
                    sent += len(block)

    def _open(self) -> Any:
        path, soundfile = self._path, _soundfile()
        try:
            with path.open("rb") as raw:
                empty = not raw.read(1)
            file = None if empty else soundfile.SoundFile(path)
        except FileNotFoundError as error:
            raise SourceError(f"There is no file '{path}'.") from error
        except IsADirectoryError as error:
            raise SourceError(f"'{path}' is a folder; give an audio file.") from error
        except (OSError, ValueError) as error:
            raise SourceError(f"'{path}' cannot be read: {_why(error)}.") from error
        except soundfile.LibsndfileError as error:
            sentence = f"'{path}' is not an audio file that can be played; use wav, flac or ogg."
            raise SourceError(sentence) from error
        if file is None or not file.frames:
            raise SourceError(f"'{path}' holds no sound; give a file that is longer than 0 s.")
        return file

    def _read(self, file: Any, frames: int) -> Any:
        try:
            block = file.read(frames, dtype="float32", always_2d=True)
        except RuntimeError as error:  # LibsndfileError is one
            sentence = f"'{self._path}' is damaged: reading it failed; what came before it is kept."
            raise SourceError(sentence) from error
        return np.nan_to_num(block, copy=False, posinf=1.0, neginf=-1.0)


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _soundfile() -> Any:
    try:
        import soundfile
    except (ImportError, OSError) as error:
        sentence = f"Audio files cannot be read ({error}); install the package 'soundfile'."
        raise SourceError(sentence) from error
    return soundfile
