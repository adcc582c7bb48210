"""Prompt layouts: where the source stands in the text a model reads, known by construction, never searched for.

A layout turns a `Source` into a `Prompt`. The answer goes behind it: released target tokens first, then what
the model generates. A prompt never ends in a space, so the first generated token brings its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.mt.contract import Source, TranslationError
from engine.mt.examples import EXAMPLES
from engine.presets import LANGUAGE_NAMES

Span = tuple[int, int]
Message = tuple[str, str]
ChatTemplate = Callable[[Sequence[Message]], str]
Tokenise = Callable[["Prompt"], "Tokens"]

CHAT_LAYOUT = "chat-1"
TALKS_TARGETS = ("de", "fr", "es", "it")

_LINE_BREAKS = re.compile(r"[\t-\r\x1c-\x1f\x85\u2028\u2029]+")
_SLOT = "\ue000{}\ue001"
_SLOTS = re.compile("\ue000(\\d+)\ue001")
_PRIVATE = re.compile("[\ue000\ue001]")


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a prompt. `control`: written by the chat template, whose control tokens count as such."""

    text: str
    control: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model reads. `unit_spans`: [start, end) in characters of `text`, one for each source unit.

    `fixed_prefix_chars`: how much of the text depends on the languages alone. `stop`: strings that end a draft.
    `context_left_out`: how many words of the context found no room (see `fit`).
    """

    segments: tuple[Segment, ...]
    unit_spans: tuple[Span, ...]
    fixed_prefix_chars: int
    stop: tuple[str, ...] = ("\n",)
    context_left_out: int = 0

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token ids of a prompt and the UTF-8 bytes [start, end) of its text that each stands for (a begin mark: none)."""

    ids: list[int]
    spans: list[Span]


class PromptLayout(Protocol):
    """How a prompt looks. `layout_id`: its name in head sets. `target_lead`: what the answer's text begins with."""

    @property
    def layout_id(self) -> str: ...

    @property
    def target_lead(self) -> str: ...

    def render(self, source: Source) -> Prompt:
        """The prompt of a source. Raises `TranslationError` for languages that the layout cannot write."""
        ...


def language_name(code: str) -> str:
    """English name of a language. Raises `TranslationError` for an unknown code."""
    try:
        return LANGUAGE_NAMES[code]
    except KeyError:
        known = ", ".join(LANGUAGE_NAMES)
        raise TranslationError(f"There is no prompt for the language '{code}'; known are {known}.") from None


def one_line(text: str) -> str:
    """Text without line breaks and without the characters that mark slots; other spacing stays."""
    return _PRIVATE.sub("", _LINE_BREAKS.sub(" ", text))


class _Builder:
    """Collects segments (neighbours of one sort are joined) and counts characters."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self.length = 0

    def add(self, text: str, control: bool = False) -> Span:
        start, self.length = self.length, self.length + len(text)
        if text and self._segments and self._segments[-1].control == control:
            self._segments[-1] = Segment(self._segments[-1].text + text, control)
        elif text:
            self._segments.append(Segment(text, control))
        return start, self.length

    def add_units(self, source: Source) -> tuple[Span, ...]:
        spans = []
        for index, unit in enumerate(source.units):
            if index:
                self.add(source.separator)
            spans.append(self.add(one_line(unit)))
        return tuple(spans)

    def prompt(self, unit_spans: tuple[Span, ...], fixed_prefix_chars: int) -> Prompt:
        return Prompt(tuple(self._segments), unit_spans, fixed_prefix_chars)


@dataclass(frozen=True, slots=True)
class FewShotLayout:
    """Worked examples for a base model: a header, four pairs, then the source line and the target's label."""

    layout_id: str = "few_shot-1"
    target_lead: str = " "

    def render(self, source: Source) -> Prompt:
        """See `PromptLayout`. Context stands behind the examples, earlier utterances are further examples."""
        names = language_name(source.source_lang), language_name(source.target_lang)
        for code, name in zip((source.source_lang, source.target_lang), names, strict=True):
            if code not in EXAMPLES:
                raise TranslationError(f"There are no worked examples in {name}; choose a chat model for it.")
        pairs = zip(EXAMPLES[source.source_lang], EXAMPLES[source.target_lang], strict=True)
        text = _Builder()
        text.add(f"Translation from {names[0]} to {names[1]}.\n\n")
        fixed = text.add("".join(_pair(names, pair) for pair in pairs))[1]
        if source.context:
            text.add(f"Context: {one_line(source.context)}\n")
        text.add("".join(_pair(names, pair) for pair in source.history))
        text.add(f"{names[0]}: ")
        spans = text.add_units(source)
        text.add(f"\n{names[1]}:")
        return text.prompt(spans, fixed)


def _pair(names: tuple[str, str], pair: tuple[str, str]) -> str:
    source, target = (one_line(side).strip() for side in pair)
    return f"{names[0]}: {source}\n{names[1]}: {target}\n"


@dataclass(frozen=True, slots=True)
class TalksLayout:
    """For a model adapted to talks: the two languages, the source and the target's label, and no examples.

    Described in `resources/adapters/README.md`; an adapter is trained on exactly this text.
    """

    layout_id: str = "talks-1"
    target_lead: str = " "

    def render(self, source: Source) -> Prompt:
        """See `PromptLayout`. Context and earlier utterances stand between the header and the source."""
        names = language_name(source.source_lang), language_name(source.target_lang)
        if source.source_lang != "en" or source.target_lang not in TALKS_TARGETS:
            raise TranslationError(
                f"The talks prompt does not translate {names[0]} to {names[1]}; choose a chat model."
            )
        text = _Builder()
        fixed = text.add(f"{names[0]} to {names[1]}\n")[1]
        if source.context:
            text.add(f"Context: {one_line(source.context)}\n")
        text.add("".join(_pair(names, pair) for pair in source.history))
        text.add(f"{names[0]}: ")
        spans = text.add_units(source)
        text.add(f"\n{names[1]}:")
        return text.prompt(spans, fixed)


_INSTRUCTION = (
    "Translate live speech from {source} to {target}. "
    "Answer only with the {target} translation, on one line. "
    "The speech may break off in the middle of a sentence: translate what is there and add nothing. "
    "If the answer has already begun, continue it. Keep names and acronyms."
)


@dataclass(frozen=True, slots=True)
class ChatLayout:
    """A conversation for an instructed model: a system turn, earlier utterances as turns, the source as a turn.

    `template` writes (role, content) messages as text that ends where the assistant's answer begins. It is
    called with slots in place of the contents, so the source's position is known whatever the contents say.
    """

    template: ChatTemplate
    layout_id: str = CHAT_LAYOUT
    target_lead: str = field(default="", init=False)

    def render(self, source: Source) -> Prompt:
        """See `PromptLayout`. Raises `TranslationError` also when the template loses or moves a message."""
        names = language_name(source.source_lang), language_name(source.target_lang)
        instruction = _INSTRUCTION.format(source=names[0], target=names[1])
        history = [one_line(side).strip() for pair in source.history for side in pair]
        roles = ["system", *("user", "assistant") * len(source.history), "user"]
        frame = self.template([(role, _SLOT.format(index)) for index, role in enumerate(roles)])
        pieces = _SLOTS.split(frame)
        if [int(slot) for slot in pieces[1::2]] != list(range(len(roles))):
            raise TranslationError("The model's chat template does not keep every message once and in order.")
        text = _Builder()
        text.add(pieces[0], control=True)
        fixed = text.add(instruction)[1]
        if source.context:
            text.add(f"\n\nContext: {one_line(source.context)}")
        for between, content in zip(pieces[2:-3:2], history, strict=True):
            text.add(between, control=True)
            text.add(content)
        text.add(pieces[-3], control=True)
        spans = text.add_units(source)
        text.add(pieces[-1].rstrip(" "), control=True)
        return text.prompt(spans, fixed)


# layout: its name in presets
PROMPTS = {FewShotLayout().layout_id: "few_shot", TalksLayout().layout_id: "talks", CHAT_LAYOUT: "chat"}


def layout_of(prompt: str, template: ChatTemplate) -> PromptLayout:
    """The layout of a preset's `prompt`; `template` serves the chat prompt alone."""
    if prompt == "few_shot":
        return FewShotLayout()
    return TalksLayout() if prompt == "talks" else ChatLayout(template)


def gemma_turns(messages: Sequence[Message]) -> str:
    """Gemma 2 and 3: no system role, the system's text opens the first user turn."""
    text, lead = "", ""
    for role, content in messages:
        if role == "system":
            lead = f"{content}\n\n"
            continue
        name = "model" if role == "assistant" else role
        text += f"<start_of_turn>{name}\n{lead}{content}<end_of_turn>\n"
        lead = ""
    return f"{text}<start_of_turn>model\n"


def chatml_turns(messages: Sequence[Message]) -> str:
    """ChatML, as Qwen and many others write it."""
    turns = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in messages)
    return f"{turns}<|im_start|>assistant\n"


def fit(layout: PromptLayout, source: Source, tokenise: Tokenise, wanted: int, limit: int) -> tuple[Prompt, Tokens]:
    """The prompt and its tokens, trimmed to `wanted`: context first (from its end), then the oldest history.

    The open utterance is never trimmed: alone it may take up to `limit` tokens, or `TranslationError` is raised.
    """
    words = source.context.split()

    def made(context_words: int, history: int) -> tuple[Prompt, Tokens]:
        kept = source.history[len(source.history) - history :]
        prompt = layout.render(replace(source, context=" ".join(words[:context_words]), history=kept))
        return replace(prompt, context_left_out=len(words) - context_words), tokenise(prompt)

    history = len(source.history)
    best = made(len(words), history)
    if len(best[1].ids) > wanted and words:
        low, high, best = 0, len(words), made(0, history)
        while high - low > 1:
            middle = (low + high) // 2
            candidate = made(middle, history)
            if len(candidate[1].ids) <= wanted:
                low, best = middle, candidate
            else:
                high = middle
    while len(best[1].ids) > wanted and history:
        history -= 1
        best = made(0, history)
    if len(best[1].ids) > max(wanted, limit):
        raise TranslationError(
            f"The open utterance needs {len(best[1].ids)} tokens with its prompt, but the model's context leaves room "
            f"for {max(limit, 0)}; choose a larger context or close utterances sooner."
        )
    return best


def byte_spans(text: str, spans: Sequence[Span]) -> list[Span]:
    """Character spans, in rising order, as spans in the text's UTF-8 bytes."""
    result, char, byte = [], 0, 0
    for span in spans:
        ends = []
        for end in span:
            byte += len(text[char:end].encode())
            char = end
            ends.append(byte)
        result.append((ends[0], ends[1]))
    return result


def unit_of_tokens(text: str, token_spans: Sequence[Span], unit_spans: Sequence[Span]) -> NDArray[np.int32]:
    """For each token the source unit that it belongs to, or -1. Shape [tokens].

    `token_spans` are [start, end) in UTF-8 bytes (a token may hold part of a character), `unit_spans` in
    characters of `text`. A token belongs to the unit in which its first character that is no space lies; a token
    of spaces goes with what it precedes. An empty token (a begin mark) belongs to none.
    """
    raw = np.frombuffer(text.encode(), np.uint8)
    owner = np.full(len(raw) + 1, -1, np.int32)
    for unit, (start, end) in enumerate(byte_spans(text, unit_spans)):
        owner[start:end] = unit
    solid = np.append(np.where(raw == ord(" "), len(raw), np.arange(len(raw))), len(raw))
    next_solid = np.minimum.accumulate(solid[::-1])[::-1]
    return np.array([owner[next_solid[a]] if a < b else -1 for a, b in token_spans], np.int32)
