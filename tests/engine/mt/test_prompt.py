from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.mt.contract import Source, TranslationError
from engine.mt.examples import EXAMPLES
from engine.mt.prompt import (
    ChatLayout,
    FewShotLayout,
    Message,
    Prompt,
    PromptLayout,
    Span,
    TalksLayout,
    Tokens,
    byte_spans,
    chatml_turns,
    fit,
    gemma_turns,
    layout_of,
    unit_of_tokens,
)

LAYOUTS: list[PromptLayout] = [FewShotLayout(), TalksLayout(), ChatLayout(gemma_turns), ChatLayout(chatml_turns)]
WELL = ("Well,", "yes,", "of", "course,")
words = st.text(st.characters(exclude_categories=("Cs",), exclude_characters=" "), min_size=1, max_size=8)


def source(
    units: Sequence[str] = WELL,
    target: str = "de",
    context: str = "",
    history: tuple[tuple[str, str], ...] = (),
    separator: str = " ",
) -> Source:
    return Source(tuple(units), "en", target, separator, context, history)


def units_in(prompt: Prompt) -> list[str]:
    return [prompt.text[start:end] for start, end in prompt.unit_spans]


def by_word(prompt: Prompt) -> Tokens:
    """A tokeniser of words with the space before them."""
    found = [match.span() for match in re.finditer(r"\s*\S+", prompt.text)]
    return Tokens(list(range(len(found))), byte_spans(prompt.text, found))


# ------------------------------------------------------------ layouts


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("separator", [" ", ""])
def test_unit_spans_are_the_units(layout: PromptLayout, separator: str) -> None:
    prompt = layout.render(source(separator=separator, context="A talk.", history=(("Hi.", "Hallo."),)))
    assert units_in(prompt) == list(WELL)
    first, last = prompt.unit_spans[0][0], prompt.unit_spans[-1][1]
    assert prompt.text[first:last] == separator.join(WELL)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(units=st.lists(words, max_size=6))
def test_any_words_are_found_where_they_were_put(layout: PromptLayout, units: list[str]) -> None:
    prompt = layout.render(source(units))
    assert len(units_in(prompt)) == len(units)
    assert all(len(found) <= len(unit) for found, unit in zip(units_in(prompt), units, strict=True))
    assert all("\n" not in unit and "\r" not in unit for unit in units_in(prompt))


def test_a_source_that_repeats_the_prompt_is_still_the_source() -> None:
    units = EXAMPLES["en"][0].split()
    prompt = FewShotLayout().render(source(units))
    assert prompt.text.count(EXAMPLES["en"][0]) == 2
    assert prompt.unit_spans[0][0] > prompt.fixed_prefix_chars


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_answer_brings_its_own_space(layout: PromptLayout) -> None:
    assert not layout.render(source()).text.endswith(" ")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_fixed_prefix_depends_on_languages_alone(layout: PromptLayout) -> None:
    plain = layout.render(source(()))
    full = layout.render(source(("Other", "words."), context="A talk.", history=(("Hi.", "Hallo."),)))
    assert plain.text[: plain.fixed_prefix_chars] == full.text[: full.fixed_prefix_chars]
    assert 0 < plain.fixed_prefix_chars < len(plain.text)


@pytest.mark.parametrize("target", ["de", "fr", "es", "it"])
def test_few_shot_shows_four_examples_then_the_source(target: str) -> None:
    text = FewShotLayout().render(source(target=target)).text
    assert text.startswith("Translation from English to ")
    assert text.count("English:") == 5
    assert all(example in text for example in EXAMPLES[target])
    assert re.search(r"English: Well, yes, of course,\n\w+:$", text)


def test_every_language_has_the_same_examples() -> None:
    assert {len(examples) for examples in EXAMPLES.values()} == {4}


def test_context_and_history_stand_between_examples_and_source() -> None:
    text = (
        FewShotLayout().render(source(context="Bees\nand\thoney", history=(("One.", "Eins."), ("Two.", "Zwei.")))).text
    )
    places = [
        text.index(part) for part in ("Context: Bees and honey\n", "English: One.\nGerman: Eins.\n", "Zwei.", "Well,")
    ]
    assert places == sorted(places)


@pytest.mark.parametrize(("code", "reason"), [("xx", "no prompt for the language 'xx'"), ("zh", "no worked examples")])
def test_few_shot_refuses_languages_it_cannot_write(code: str, reason: str) -> None:
    with pytest.raises(TranslationError, match=reason):
        FewShotLayout().render(source(target=code))


def test_gemma_turns() -> None:
    text = ChatLayout(gemma_turns).render(source(history=(("Hi.", "Hallo."),))).text
    assert text.startswith("<start_of_turn>user\nTranslate live speech from English to German.")
    assert text.endswith(
        "\n\nHi.<end_of_turn>\n<start_of_turn>model\nHallo.<end_of_turn>\n"
        "<start_of_turn>user\nWell, yes, of course,<end_of_turn>\n<start_of_turn>model\n"
    )


def test_control_tokens_said_by_someone_are_only_text() -> None:
    said = ("<end_of_turn>", "<|im_end|>", "\ue0000\ue001")
    prompt = ChatLayout(chatml_turns).render(source(said, context="<|im_start|>", history=(("<|im_end|>", "a"),)))
    control = "".join(segment.text for segment in prompt.segments if segment.control)
    assert control.count("<|im_start|>") == 5
    assert control.count("<|im_end|>") == 4
    assert units_in(prompt) == ["<end_of_turn>", "<|im_end|>", "0"]


@pytest.mark.parametrize(
    "broken",
    [
        lambda messages: messages[-1][1],
        lambda messages: "".join(content * 2 for _, content in messages),
        lambda messages: "".join(content for _, content in reversed(messages)),
    ],
)
def test_a_template_that_loses_or_moves_messages_is_refused(broken: object) -> None:
    def template(messages: Sequence[Message]) -> str:
        return broken(messages)  # type: ignore[operator]

    with pytest.raises(TranslationError, match="chat template"):
        ChatLayout(template).render(source())


def test_the_talks_prompt_is_short() -> None:
    prompt = TalksLayout().render(source(("So", "what?")))
    assert prompt.text == "English to German\nEnglish: So what?\nGerman:"
    assert prompt.text[: prompt.fixed_prefix_chars] == "English to German\n"
    assert prompt.stop == ("\n",)
    around = TalksLayout().render(source(("So", "what?"), "it", "Bees\nand honey", ((" One. ", "Uno."),)))
    assert around.text == (
        "English to Italian\nContext: Bees and honey\nEnglish: One.\nItalian: Uno.\nEnglish: So what?\nItalian:"
    )


@pytest.mark.parametrize(("source_lang", "target_lang"), [("en", "cs"), ("en", "zh"), ("de", "en"), ("en", "en")])
def test_the_talks_prompt_knows_four_directions(source_lang: str, target_lang: str) -> None:
    with pytest.raises(TranslationError, match="does not translate"):
        TalksLayout().render(Source(WELL, source_lang, target_lang))


@pytest.mark.parametrize(("name", "layout_id"), [("few_shot", "few_shot-1"), ("talks", "talks-1"), ("chat", "chat-1")])
def test_layouts_have_names(name: str, layout_id: str) -> None:
    assert layout_of(name, gemma_turns).layout_id == layout_id


# ------------------------------------------------------------ fit


CONTEXT = " ".join(f"context{i}" for i in range(20))
HISTORY = tuple((f"source {i}.", f"Ziel {i}.") for i in range(3))


def fitted(wanted: int, limit: int = 10_000) -> str:
    prompt, tokens = fit(FewShotLayout(), source(context=CONTEXT, history=HISTORY), by_word, wanted, limit)
    assert tokens == by_word(prompt)
    assert units_in(prompt) == list(WELL)
    return prompt.text


def tokens_of(**around: object) -> int:
    return len(by_word(FewShotLayout().render(source(**around))).ids)  # type: ignore[arg-type]


def test_what_fits_is_left_whole() -> None:
    text = fitted(tokens_of(context=CONTEXT, history=HISTORY))
    assert CONTEXT in text
    assert "source 0." in text


def test_context_goes_first_and_from_its_end() -> None:
    text = fitted(tokens_of(context=CONTEXT, history=HISTORY) - 5)
    assert "context14" in text
    assert "context15" not in text
    assert "source 0." in text


def test_a_prompt_says_how_much_of_the_context_it_lacks() -> None:
    asked, whole = source(context=CONTEXT, history=HISTORY), tokens_of(context=CONTEXT, history=HISTORY)
    words = len(CONTEXT.split())
    for wanted, left_out in ((whole, 0), (whole - 5, 5), (tokens_of(history=HISTORY), words), (0, words)):
        assert fit(FewShotLayout(), asked, by_word, wanted, 10_000)[0].context_left_out == left_out
    assert fit(FewShotLayout(), source(history=HISTORY), by_word, 0, 10_000)[0].context_left_out == 0


def test_then_the_oldest_history_goes() -> None:
    text = fitted(tokens_of(history=HISTORY) - 1)
    assert "Context" not in text
    assert "source 0." not in text
    assert "source 1." in text
    assert "source 2." in text


def test_the_utterance_alone_may_exceed_what_was_wanted() -> None:
    text = fitted(1)
    assert "Context" not in text
    assert "source" not in text


def test_an_utterance_beyond_the_limit_is_one_sentence() -> None:
    with pytest.raises(TranslationError, match=r"^The open utterance needs \d+ tokens .* room for 20;"):
        fitted(1, limit=20)


@given(wanted=st.integers(0, 260), context=st.lists(st.just("word"), max_size=30), turns=st.integers(0, 4))
def test_fit_keeps_to_the_budget_or_has_nothing_left_to_trim(wanted: int, context: list[str], turns: int) -> None:
    asked = source(context=" ".join(context), history=HISTORY[:1] * turns)
    prompt, tokens = fit(FewShotLayout(), asked, by_word, wanted, 10_000)
    trimmed = "Context" not in prompt.text and prompt.text == FewShotLayout().render(source()).text
    assert len(tokens.ids) <= wanted or trimmed
    assert units_in(prompt) == list(WELL)


# ------------------------------------------------------------ units of tokens


def mapped(pieces: Sequence[str | bytes], before: str, units: Sequence[str], separator: str = " ") -> list[int]:
    """Units of tokens that spell `before`, the units, and whatever follows."""
    raw = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
    spans: list[Span] = []
    at = 0
    for piece in raw:
        spans.append((at, at + len(piece)))
        at += len(piece)
    unit_spans: list[Span] = []
    start = len(before)
    for unit in units:
        unit_spans.append((start, start + len(unit)))
        start += len(unit) + len(separator)
    return unit_of_tokens(b"".join(raw).decode(), spans, unit_spans).tolist()


@pytest.mark.parametrize(
    ("pieces", "units", "expected"),
    [
        (["A:", " Well", ",", " yes", ",", " of", " course", ",", "\n", "B:"], WELL, [-1, 0, 0, 1, 1, 2, 3, 3, -1, -1]),
        (
            ["A:", " ", "Well,", " ", "yes", ", ", "of ", "cour", "se", ",\n", "B:"],
            WELL,
            [-1, 0, 0, 1, 1, 1, 2, 3, 3, 3, -1],
        ),
        (["A: ", "Well,", " yes,", " of course", ",\n\n", "B:"], WELL, [-1, 0, 1, 2, 3, -1]),
        (["A:", " 2", "0", "2", "4", ",", " so", "\n"], ("2024,", "so"), [-1, 0, 0, 0, 0, 0, 1, -1]),
        (["A:", " ", "7", " ", "– ", "8", "\n "], ("7", "–", "8"), [-1, 0, 0, 1, 1, 2, -1]),
        (["", "A: ", b"\xe6\xbc", b"\xa2", "字", "。", "\n"], ("漢", "字。"), None),
    ],
)
def test_units_of_tokens(pieces: list[str | bytes], units: tuple[str, ...], expected: list[int] | None) -> None:
    if expected is None:
        assert mapped(pieces, "A: ", units, separator="") == [-1, -1, 0, 0, 1, 1, -1]
    else:
        assert mapped(pieces, "A: ", units) == expected


@given(
    units=st.lists(st.text("ab,.é漢🎉", min_size=1, max_size=6), min_size=1, max_size=6),
    cuts=st.lists(st.integers(0, 200), max_size=40),
)
def test_every_token_of_the_span_belongs_to_a_unit_however_text_is_cut(units: list[str], cuts: list[int]) -> None:
    raw = f"English: {' '.join(units)}\nGerman:".encode()
    edges = sorted({0, len(raw), *(cut for cut in cuts if cut < len(raw))})
    pieces = [raw[a:b] for a, b in pairwise(edges)]
    found = mapped(pieces, "English: ", units)
    start, end = len(b"English: "), len(raw) - len(b"\nGerman:")
    for (first, last), unit in zip(pairwise(edges), found, strict=True):
        assert (unit >= 0) == (start - 1 <= first < end), (raw[first:last], unit)
        if unit >= 0 and start <= first:
            so_far = raw[start : first + 1].decode(errors="ignore")
            assert unit == so_far.count(" ")
    inside = [unit for unit in found if unit >= 0]
    assert inside == sorted(inside)
