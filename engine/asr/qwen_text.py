"""What Qwen3-ASR is asked, and what it answers. Pure.

The prompt is a chat: a system turn with the context (names and terms), a user turn with the audio, and the beginning
of the answer, `language German<asr_text>` and the text so far. Without a language the model writes that line itself;
`language None` means that it heard no speech. A checkpoint's own chat template is used where there is one; `chat` is
the same form as far as the sources of vLLM and of the model's own package tell it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

AUDIO = "<|audio_start|><|audio_pad|><|audio_end|>"
AUDIO_PAD = "<|audio_pad|>"
TIMESTAMP = "<timestamp>"
TEXT_TAG = "<asr_text>"
END_TOKENS = ("<|im_end|>", "<|endoftext|>")
# More of the context is not read: it is processed anew with every update.
CONTEXT_CHARACTERS = 1200

_CONTROL = re.compile(r"<\|[^|]*\|>")
_NO_LANGUAGE = "none"

# Codes of the languages that the model knows, by the names that it was trained with.
LANGUAGES = {
    "ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish",
    "fa": "Persian", "fi": "Finnish", "fil": "Filipino", "fr": "French", "hi": "Hindi", "hu": "Hungarian",
    "id": "Indonesian", "it": "Italian", "ja": "Japanese", "ko": "Korean", "mk": "Macedonian", "ms": "Malay",
    "nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sv": "Swedish",
    "th": "Thai", "tr": "Turkish", "vi": "Vietnamese", "yue": "Cantonese", "zh": "Chinese",
}  # fmt: skip
# Those that the forced aligner was trained on.
ALIGNED = frozenset("de en es fr it ja ko pt ru yue zh".split())


@dataclass(frozen=True, slots=True)
class Answer:
    """A parsed answer. `language`: the name the model gave it, "" where it gave none."""

    language: str
    text: str


def clean_context(context: str) -> str:
    """The context as one line without control marks, whole words of its first `CONTEXT_CHARACTERS` characters.

    Removing a mark may put another together, so it is done until nothing changes.
    """
    before = None
    while context != before:
        before, context = context, _CONTROL.sub("", context).replace(TEXT_TAG, "")
    words, kept = context.split(), ""
    for word in words:
        if len(kept) + 1 + len(word) > CONTEXT_CHARACTERS:
            break
        kept = f"{kept} {word}" if kept else word
    return kept


def chat(context: str) -> str:
    """The turns in front of the answer, with one placeholder for the audio."""
    return f"<|im_start|>system\n{context}<|im_end|>\n<|im_start|>user\n{AUDIO}<|im_end|>\n<|im_start|>assistant\n"


def answer_head(language: str, so_far: str) -> str:
    """How the answer begins. `language`: a name as in `LANGUAGES`, "" to let the model find it (then with no text)."""
    return f"language {language}{TEXT_TAG}{so_far}" if language else ""


def parse_answer(raw: str, language: str) -> Answer:
    """Language and text of what the model wrote behind the prompt. `language`: as given in the prompt."""
    raw = _CONTROL.sub("", raw)
    if language:
        return Answer(language, raw.replace(TEXT_TAG, ""))
    head, tag, text = raw.partition(TEXT_TAG)
    if not tag:  # an answer that was cut short inside its first line says nothing
        return Answer("", "" if head.lstrip().lower().startswith("language") else raw.strip())
    name = head.strip().splitlines()[0].strip() if head.strip() else ""
    name = name[len("language ") :].strip() if name.lower().startswith("language ") else name
    return Answer("" if name.lower() == _NO_LANGUAGE else name, text.replace(TEXT_TAG, "").strip())
