"""Text and tokens with every sort of tokeniser that the supported models bring."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
pytest.importorskip("transformers")

from engine.alignatt.frontier import Frontier
from engine.alignatt.units import split_units
from engine.mt.contract import Source, TranslationError
from engine.mt.hf_tokens import HfTokens
from engine.mt.prompt import ChatLayout, FewShotLayout, Prompt, PromptLayout, Segment, byte_spans, unit_of_tokens
from tests.engine.mt.tiny_models import CHATML, GEMMA, TOKENISERS, wrapped

KINDS = sorted(TOKENISERS)
_made: dict[str, HfTokens] = {}


def tokens(kind: str) -> HfTokens:
    if kind not in _made:
        _made[kind] = HfTokens(wrapped(kind, CHATML), "qwen2" if kind == "byte_level" else "gemma3_text", (1,))
    return _made[kind]


def without_places(kind: str) -> HfTokens:
    """The same, on a tokeniser that cannot tell the places of its tokens."""
    tokeniser = wrapped(kind)
    tokeniser.__class__ = type("Slow", (tokeniser.__class__,), {"is_fast": False})
    return HfTokens(tokeniser, "qwen2", (1,))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", ["few_shot", "chat"])
def test_commas_belong_to_their_words(kind: str, layout: str) -> None:
    """ "Well, yes, of course," is 4 units; once all are committed, every token of the span is accessible."""
    vocabulary = tokens(kind)
    units = tuple(split_units("Well, yes, of course,", "en"))
    frontier = Frontier(len(units), len(units))
    assert (len(units), frontier.accessible(0)) == (4, 4)
    made: PromptLayout = FewShotLayout() if layout == "few_shot" else ChatLayout(vocabulary.chat_template)
    prompt = made.render(Source(units, "en", "de"))
    coded = vocabulary.tokenise(prompt)
    owners = unit_of_tokens(prompt.text, coded.spans, prompt.unit_spans)
    spans = byte_spans(prompt.text, prompt.unit_spans)
    start, end = spans[0][0], spans[-1][1]
    space = prompt.text.encode()[start - 1 : start] == b" "  # it belongs to the word behind it
    inside = [owner for owner, (a, b) in zip(owners, coded.spans, strict=True) if a < end and b > start - space]
    assert set(inside) == {0, 1, 2, 3}
    assert sorted(inside) == inside
    assert max(inside) < frontier.accessible(0)
    assert sum(owner >= 0 for owner in owners) == len(inside)


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(st.sampled_from("abc äöüß,. é漢字🙂'-"), min_size=1, max_size=30))
def test_places_cover_the_text_in_order(kind: str, text: str) -> None:
    prompt = Prompt((Segment("Ja: "), Segment(text)), (), 0)
    coded = tokens(kind).tokenise(prompt)
    end, covered = len(prompt.text.encode()), set()
    last = 0
    for a, b in coded.spans:
        assert last <= a <= b <= end
        last = a
        covered |= set(range(a, b))
    assert {at for at, byte in enumerate(prompt.text.encode()) if byte != ord(" ")} <= covered


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(st.sampled_from("abc äöüß,. é漢字🙂'-"), max_size=30).map(lambda text: f"a{text}"))
def test_pieces_spell_the_text(kind: str, text: str) -> None:
    """What `encode_target` makes of released text must read the same again."""
    vocabulary = tokens(kind)
    spelled = b"".join(vocabulary.piece(token) for token in vocabulary.encode(f" {text}")).decode()
    assert spelled == f" {text}"


@pytest.mark.parametrize("kind", KINDS)
def test_places_without_offsets_are_the_same(kind: str) -> None:
    prompt = FewShotLayout().render(Source(("Schöne", "neue", "Wörter"), "en", "de"))
    with_places, slow = tokens(kind).tokenise(prompt), without_places(kind).tokenise(prompt)
    begin = len(with_places.ids) - len(slow.ids)
    assert with_places.ids[begin:] == slow.ids
    mapped = [unit_of_tokens(prompt.text, one.spans, prompt.unit_spans) for one in (with_places, slow)]
    assert mapped[0][begin:].tolist() == mapped[1].tolist()


def test_a_tokeniser_that_changes_its_text_is_refused_where_places_are_unknown() -> None:
    composed = Prompt((Segment("e\u0301"),), (), 0)  # NFC makes one character of it
    with pytest.raises(TranslationError, match="does not reproduce its text"):
        without_places("byte_level").tokenise(composed)


@pytest.mark.parametrize("kind", KINDS)
def test_control_tokens_in_contents_are_mere_letters(kind: str) -> None:
    vocabulary = tokens(kind)
    written = Prompt((Segment("<|im_end|>", control=True),), (), 0)
    said = Prompt((Segment("<|im_end|>"),), (), 0)
    assert 7 in vocabulary.tokenise(written).ids
    assert 7 not in vocabulary.tokenise(said).ids
    assert 7 not in vocabulary.encode("<|im_end|>")


@pytest.mark.parametrize("kind", KINDS)
def test_control_tokens_end_an_answer_and_show_nothing(kind: str) -> None:
    vocabulary = tokens(kind)
    assert all(vocabulary.ends_text(token) for token in range(8))
    assert vocabulary.piece(7) == b""
    assert vocabulary.piece(7, control=True) == b"<|im_end|>"
    assert not vocabulary.ends_text(vocabulary.encode("a")[-1])


def test_the_begin_mark_comes_once() -> None:
    vocabulary = tokens("gemma_like")
    plain = Prompt((Segment("a"),), (), 0)
    marked = Prompt((Segment("<bos>", control=True), Segment("a")), (), 0)
    assert vocabulary.tokenise(plain).ids[0] == 2
    assert vocabulary.tokenise(plain).spans[0] == (0, 0)
    assert vocabulary.tokenise(marked).ids.count(2) == 1
    assert 2 not in tokens("byte_level").tokenise(plain).ids


# ------------------------------------------------------------ chat templates


def test_a_template_without_system_role_gets_it_in_the_first_turn() -> None:
    vocabulary = HfTokens(wrapped("gemma_like", GEMMA), "gemma3_text", (1,))
    text = vocabulary.chat_template([("system", "S"), ("user", "U"), ("assistant", "A"), ("user", "V")])
    assert text == (
        "<bos><start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n"
        "<start_of_turn>user\nV<end_of_turn>\n<start_of_turn>model\n"
    )


def test_a_model_without_template_says_so() -> None:
    with pytest.raises(TranslationError, match="has no chat template"):
        HfTokens(wrapped("byte_level"), "qwen2", (1,)).chat_template([("user", "U")])


def test_a_broken_template_says_what_it_said() -> None:
    broken = HfTokens(wrapped("byte_level", "{{ raise_exception('only tools') }}"), "qwen2", (1,))
    with pytest.raises(TranslationError, match=r"chat template failed: only tools"):
        broken.chat_template([("user", "U")])
