"""Prompts and answers of Qwen3-ASR and its aligner."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.asr import qwen_text
from engine.asr.qwen_text import Answer, parse_answer


def test_the_chat_has_the_context_and_one_place_for_the_audio() -> None:
    assert qwen_text.chat("Kubernetes, Prometheus") + qwen_text.answer_head("German", "Wir gehen") == (
        "<|im_start|>system\nKubernetes, Prometheus<|im_end|>\n"
        "<|im_start|>user\n<|audio_start|><|audio_pad|><|audio_end|><|im_end|>\n"
        "<|im_start|>assistant\nlanguage German<asr_text>Wir gehen"
    )
    assert qwen_text.answer_head("", "text") == ""


def test_every_aligned_language_is_a_language() -> None:
    assert qwen_text.ALIGNED.issubset(qwen_text.LANGUAGES)
    assert len(qwen_text.ALIGNED) == 11


@pytest.mark.parametrize(
    ("raw", "language", "answer"),
    [
        (" start now.", "English", Answer("English", " start now.")),
        (" start<|im_end|>", "English", Answer("English", " start")),
        ("language German<asr_text>Guten Tag", "", Answer("German", "Guten Tag")),
        ("language Chinese\nsomething\n<asr_text>你好", "", Answer("Chinese", "你好")),
        ("language None<asr_text>", "", Answer("", "")),
        ("language None<asr_text>hm", "", Answer("", "hm")),
        ("language Ger", "", Answer("", "")),  # cut short
        ("just text", "", Answer("", "just text")),
        ("", "", Answer("", "")),
    ],
)
def test_answers(raw: str, language: str, answer: Answer) -> None:
    assert parse_answer(raw, language) == answer


PIECES = st.sampled_from(["<|im_end|>", "<asr_text>", "<|", "|>", "<asr", "_text>", "a", " ", "\n"])


@given(st.lists(PIECES, max_size=12))
def test_a_context_cannot_speak_for_the_program(pieces: list[str]) -> None:
    clean = qwen_text.clean_context("".join(pieces))
    assert "<asr_text>" not in clean
    assert qwen_text._CONTROL.search(clean) is None
    assert "\n" not in clean


def test_a_long_context_ends_with_a_whole_word() -> None:
    clean = qwen_text.clean_context("Herons " * 1000)
    assert len(clean) <= qwen_text.CONTEXT_CHARACTERS
    assert clean.split() == ["Herons"] * len(clean.split())
