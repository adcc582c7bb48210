"""Text and tokens with a tokeniser of transformers: ids with their places in the text, and the bytes of each token."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from engine.mt.contract import TranslationError
from engine.mt.prompt import Message, Prompt, Segment, Span, Tokens

_END_NAMES = (
    "<end_of_turn>",
    "<turn|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "</s>",
    "<eos>",
)
_BEGIN_MARK_MODELS = ("gemma", "llama")  # trained with a begin mark, whatever their tokeniser's settings say


class HfTokens:
    """A tokeniser as the translator needs it. `end_ids`: what the model's own settings call the end of a text."""

    def __init__(self, tokeniser: Any, model_type: str, end_ids: Sequence[int]) -> None:
        self._tokeniser = tokeniser
        self._byte_level = _is_byte_level(tokeniser)
        self._special = set(tokeniser.all_special_ids) | {
            token for token, added in tokeniser.added_tokens_decoder.items() if added.special
        }
        self._added = set(tokeniser.added_tokens_decoder)
        known = tokeniser.get_vocab()
        self._ends = self._special | set(end_ids) | {known[name] for name in _END_NAMES if name in known}
        self._begin = self._begin_mark(model_type)
        self._pads_space = self.piece(self._encode("a", False)[0][0]).startswith(b" ")

    def _begin_mark(self, model_type: str) -> int | None:
        first: list[int] = self._tokeniser("")["input_ids"][:1]
        if first:
            return first[0]
        return self._tokeniser.bos_token_id if model_type.startswith(_BEGIN_MARK_MODELS) else None

    def _encode(self, text: str, control: bool) -> tuple[list[int], list[Span] | None]:
        """Ids and [start, end) in characters (None when the tokeniser tells no places)."""
        places = bool(self._tokeniser.is_fast)
        coded = self._tokeniser(
            text, add_special_tokens=False, return_offsets_mapping=places, split_special_tokens=not control
        )
        return list(coded["input_ids"]), [(a, b) for a, b in coded["offset_mapping"]] if places else None

    def pieces(self) -> list[bytes]:
        """The bytes of every token, by id."""
        read = HfTokens.piece.__wrapped__  # a whole vocabulary is not worth keeping
        return [read(self, token) for token in range(len(self._tokeniser))]

    def encode(self, text: str) -> list[int]:
        """Tokens of plain text that continues another: no begin mark, control tokens in it are only letters."""
        if self._pads_space and text.startswith(" "):
            text = text[1:]
        return self._encode(text, False)[0] if text else []

    def tokenise(self, prompt: Prompt) -> Tokens:
        """Tokens of a prompt with their places. Raises `TranslationError` if they spell another text."""
        ids: list[int] = []
        spans: list[Span] = []
        at = 0
        for segment in prompt.segments:
            part, places = self._encode(segment.text, segment.control)
            byte_places = self._by_pieces(segment, part) if places is None else _in_bytes(segment.text, places)
            ids += part
            spans += [(at + start, at + end) for start, end in byte_places]
            at += len(segment.text.encode())
        if self._begin is not None and ids[:1] != [self._begin]:
            ids.insert(0, self._begin)
            spans.insert(0, (0, 0))
        return Tokens(ids, spans)

    def _by_pieces(self, segment: Segment, ids: Sequence[int]) -> list[Span]:
        """Places by adding up the bytes of the tokens."""
        pieces = [self.piece(token, control=segment.control) for token in ids]
        start = len(segment.text.encode()) - sum(map(len, pieces))  # some tokenisers put a space before a text
        if start not in ((0, -1) if self._pads_space else (0,)):
            raise TranslationError("The model's tokeniser does not reproduce its text; choose another model.")
        spans = []
        for piece in pieces:
            spans.append((max(start, 0), start + len(piece)))
            start += len(piece)
        return spans

    @functools.cache  # noqa: B019 - one tokeniser lives as long as its process uses the model
    def piece(self, token: int, control: bool = False) -> bytes:
        """UTF-8 bytes of a token (possibly a part of a character); control tokens are empty unless `control`."""
        if token in self._special and not control:
            return b""
        spelled: str | None = self._tokeniser.convert_ids_to_tokens(token)
        if spelled is None:
            return b""
        if self._byte_level:
            if token in self._added:
                return spelled.encode()
            return bytes(_BYTE_OF[char] for char in spelled)
        if len(spelled) == 6 and spelled.startswith("<0x") and spelled.endswith(">"):
            return bytes([int(spelled[3:5], 16)])
        return spelled.replace("▁", " ").encode()

    def ends_text(self, token: int) -> bool:
        """Whether the token ends the answer: an end mark, or any control token (none belongs into a translation)."""
        return token in self._ends

    @property
    def has_chat_template(self) -> bool:
        """Whether the model came with the format of its conversations."""
        return bool(self._tokeniser.chat_template)

    def chat_template(self, messages: Sequence[Message]) -> str:
        """Messages in the model's own chat format, up to where the answer begins. Raises `TranslationError`."""
        if not self.has_chat_template:
            raise TranslationError("This model has no chat template; use the few_shot prompt with it.")
        try:
            text: str = self._render(messages)
        except Exception as with_system:  # noqa: BLE001 - a template raises whatever its author chose
            # Some templates know no system role: its text then opens the first user turn.
            try:
                text = self._render(_without_system(messages))
            except Exception:  # noqa: BLE001 - as above; the first failure is the one to tell
                raise TranslationError(f"The model's chat template failed: {with_system}.") from with_system
        return text

    def _render(self, messages: Sequence[Message]) -> str:
        turns = [{"role": role, "content": content} for role, content in messages]
        # Models that think aloud by default are asked to answer at once.
        return str(
            self._tokeniser.apply_chat_template(
                turns, tokenize=False, add_generation_prompt=True, enable_thinking=False
            )
        )


def _without_system(messages: Sequence[Message]) -> list[Message]:
    lead = "\n\n".join(content for role, content in messages if role == "system")
    rest = [message for message in messages if message[0] != "system"]
    return [(rest[0][0], f"{lead}\n\n{rest[0][1]}"), *rest[1:]] if rest else []


def _in_bytes(text: str, spans: Sequence[Span]) -> list[Span]:
    """Spans in characters as spans in UTF-8 bytes; tokens that share a character share its bytes."""
    at = [0]
    for char in text:
        at.append(at[-1] + len(char.encode()))
    return [(at[start], at[end]) for start, end in spans]


def _is_byte_level(tokeniser: Any) -> bool:
    """Whether tokens are spelled in the byte alphabet of GPT-2 (otherwise "▁" is a space and "<0x41>" a byte)."""
    decoder = getattr(getattr(tokeniser, "backend_tokenizer", None), "decoder", None)
    return decoder is not None and b"ByteLevel" in decoder.__getstate__()


def _byte_alphabet() -> dict[str, int]:
    """The characters that byte-level vocabularies write bytes as: printable ones stand for themselves, the others for
    the code points from 256 on, in order."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + rank): byte for rank, byte in enumerate(others)}


_BYTE_OF = _byte_alphabet()
