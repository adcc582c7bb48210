"""Protocol v1: what its frames hold. Pure: text in, validated values out, and back.

Times are milliseconds here and nowhere else. A frame that is not valid raises `ProtocolFault`, which carries the code
and the sentence of the `error` frame that answers it.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from engine.mt.wire import MAX_HISTORY, MAX_TEXT_CHARS, MAX_WORD_CHARS, MAX_WORDS, PROTOCOL_VERSION

BAD_PROTOCOL = "bad_protocol"
UNSUPPORTED_DIRECTION = "unsupported_direction"
BUSY = "busy"
PROCESSING_FAILED = "processing_failed"


class ProtocolFault(Exception):
    """A frame that cannot be taken. `fields` go into the `error` frame beside code and message."""

    def __init__(self, code: str, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.code = code
        self.fields = fields

    def frame(self) -> str:
        """The `error` frame."""
        return dump({"type": "error", "code": self.code, "message": str(self), **self.fields})


def _one_line(value: Any) -> Any:
    """A word as it may stand in a prompt: no control characters, single spaces."""
    if not isinstance(value, str):
        raise ValueError("a word is text")
    if value.isprintable():
        return " ".join(value.split())
    plain = "".join(" " if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") else char for char in value)
    return " ".join(plain.split())


def _encodable(value: Any) -> Any:
    if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        raise ValueError("the text holds half a character")
    return value


Text = Annotated[str, BeforeValidator(_encodable), Field(max_length=MAX_TEXT_CHARS)]
Language = Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$", max_length=32)]
Spoken = Annotated[str, BeforeValidator(_one_line), Field(min_length=1, max_length=MAX_WORD_CHARS)]
Milliseconds = Annotated[float, Field(ge=0, le=1e10, allow_inf_nan=False)]
WireWord = tuple[Spoken, Milliseconds | None, Milliseconds | None]


class _Frame(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


M = TypeVar("M", bound=_Frame)


class Overrides(_Frame):
    """What a client may change for its session. Keys that are not here are ignored."""

    translation_alignatt_hold_back_target_units: Annotated[int, Field(ge=0, le=64)] | None = None
    translation_alignatt_min_emit_target_units: Annotated[int, Field(ge=0, le=64)] | None = None
    translation_alignatt_inaccessible_ms: Annotated[float, Field(ge=0, le=60_000, allow_inf_nan=False)] | None = None
    translation_alignatt_border_margin: Annotated[int, Field(ge=0, le=64)] | None = None
    translation_alignatt_commit_fast_path: bool | None = None
    translation_alignatt_source_lcp_stability: bool | None = None
    partial_max_new_tokens: Annotated[int, Field(ge=1, le=256)] | None = None
    max_history_utterances: Annotated[int, Field(ge=0, le=16)] | None = None


class Init(_Frame):
    """The first frame of a connection."""

    type: Literal["init"]
    protocol_version: int
    source_lang: Language
    target_lang: Language
    preset: Text | None = None
    overrides: Overrides | None = None
    context_text: Text | None = None
    history: Annotated[
        list[Annotated[list[Text], Field(min_length=2, max_length=2)]], Field(max_length=MAX_HISTORY)
    ] = Field(default_factory=list)
    accepted_target_prefix: Text | None = None

    @property
    def direction(self) -> str:
        return f"{self.source_lang}-{self.target_lang}"


class Tail(_Frame):
    """The recogniser's present guess at what follows the committed words."""

    words: Annotated[list[WireWord], Field(max_length=MAX_WORDS)]


class Update(_Frame):
    """The full state of the open utterance: all its committed words, and the tail behind them."""

    type: Literal["update"]
    seq: Annotated[int, Field(ge=0, le=2**53)]
    utterance_id: Annotated[int, Field(ge=0, le=2**53)]
    words: Annotated[list[WireWord], Field(max_length=MAX_WORDS)]
    tail: Tail | None = None
    clock_ms: Milliseconds
    is_final: bool


_MESSAGES: TypeAdapter[Init | Update] = TypeAdapter(Annotated[Init | Update, Field(discriminator="type")])


def parse(frame: str | bytes) -> Init | Update:
    """The message in a frame. Raises `ProtocolFault` (`bad_protocol`); one about an update carries its `seq`."""
    if isinstance(frame, bytes):
        raise ProtocolFault(BAD_PROTOCOL, "Frames are JSON text; this one is binary.")
    try:
        message = _MESSAGES.validate_json(frame)
    except (ValidationError, UnicodeError):
        return _explained(frame)
    if isinstance(message, Init) and message.protocol_version != PROTOCOL_VERSION:
        raise _wrong_version()
    return message


def _explained(frame: str) -> Init | Update:
    """A frame that was not taken, step by step, for a sentence that says why."""
    try:
        data = json.loads(frame)
    except (ValueError, RecursionError) as error:
        raise ProtocolFault(BAD_PROTOCOL, "The frame is not valid JSON.") from error
    kind = data.get("type") if isinstance(data, dict) else None
    if kind == "init":
        version = data.get("protocol_version")
        if type(version) is not int or version != PROTOCOL_VERSION:
            raise _wrong_version()
        return _validated(Init, frame)
    if kind == "update":
        seq = data.get("seq")
        return _validated(Update, frame, **({"seq": seq} if type(seq) is int else {}))
    raise ProtocolFault(BAD_PROTOCOL, "A frame is a JSON object of type 'init' or 'update'.")


def _wrong_version() -> ProtocolFault:
    return ProtocolFault(BAD_PROTOCOL, f"protocol_version must be {PROTOCOL_VERSION}.")


def _validated(model: type[M], frame: str, **fields: Any) -> M:
    # from the text itself: in strict mode only JSON's own lists may stand for the pairs and triples of the model
    try:
        return model.model_validate_json(frame)
    except (ValidationError, UnicodeError) as error:
        what = "it holds half a character"
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            what = f"'{where}': {first['msg']}" if where else first["msg"]
        raise ProtocolFault(BAD_PROTOCOL, f"The {model.__name__.lower()} is not valid, {what}.", **fields) from None


def dump(message: dict[str, Any]) -> str:
    """A message as a frame."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def init_ok(direction: str, preset: str, model: str, provenance: Mapping[str, Any]) -> str:
    """The answer to a good `init`. `provenance` goes beyond version 1, whose clients ignore what they do not know."""
    return dump(
        {
            "type": "init_ok",
            "protocol_version": PROTOCOL_VERSION,
            "direction": direction,
            "preset": preset,
            "model": model,
            **provenance,
        }
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """A `translation`. `committed_delta` is what `committed_text` has more than the answer before it.

    `covered_source_units`: 1 + the highest unit that the released text looks at. `engine_calls`: drafts that this
    answer took, 0 for a release on commit. `queued_ms`: from the frame's arrival to taking the update up, `server_ms`:
    from there to this answer, both by the clock; `server_cpu_ms`: what the thread that made it computed meanwhile.
    `notice`: a sentence for people, once, when the session goes on with less than before.
    """

    seq: int
    utterance_id: int
    final: bool
    committed_text: str
    committed_delta: str
    buffer_text: str
    covered_source_units: int | None
    stop_reason: str
    forced_final: bool = False
    engine_calls: int = 0
    queued_ms: float = 0.0
    server_ms: float = 0.0
    server_cpu_ms: float = 0.0
    notice: str = ""

    def frame(self) -> str:
        """The `translation` frame. `forced_final` stands on finals only, `notice` where there is one."""
        message = {"type": "translation", **{name: getattr(self, name) for name in _ANSWER_FIELDS}}
        if not self.final:
            del message["forced_final"]
        if not self.notice:
            del message["notice"]
        return dump(message)


_ANSWER_FIELDS = tuple(field.name for field in fields(Answer))
