"""Sentences that come from the rest of the program in English, in the interface's language.

The models behind the window know no Qt and speak English; what they say often is listed here, with {places} for what
varies. A sentence that is not listed is shown as it is: nothing is ever hidden for lack of a translation.
"""

from __future__ import annotations

import re

from PySide6.QtCore import QT_TRANSLATE_NOOP

from app.i18n import fill, translate
from app.status import Status

CONTEXT = "Sentences"
_LISTED: tuple[object, ...] = (
    QT_TRANSLATE_NOOP("Sentences", "Off"),
    QT_TRANSLATE_NOOP("Sentences", "Ready"),
    QT_TRANSLATE_NOOP("Sentences", "Listening"),
    QT_TRANSLATE_NOOP("Sentences", "Speech"),
    QT_TRANSLATE_NOOP("Sentences", "Loading"),
    QT_TRANSLATE_NOOP("Sentences", "Loading {percent}%"),
    QT_TRANSLATE_NOOP("Sentences", "Loading {percent}%: {text}"),
    QT_TRANSLATE_NOOP("Sentences", "Loading: {text}"),
    QT_TRANSLATE_NOOP("Sentences", "{seconds} s behind"),
    QT_TRANSLATE_NOOP("Sentences", "Finishing the last words"),
    QT_TRANSLATE_NOOP("Sentences", "The microphone was lost"),
    QT_TRANSLATE_NOOP("Sentences", "The engine stopped"),
    QT_TRANSLATE_NOOP("Sentences", "demo quality"),
    QT_TRANSLATE_NOOP("Sentences", "starting the engine"),
    QT_TRANSLATE_NOOP("Sentences", "The engine ended without being asked to; restart it to go on."),
    QT_TRANSLATE_NOOP("Sentences", "The engine ended with exit code {code}; restart it to go on."),
    QT_TRANSLATE_NOOP(
        "Sentences", "The engine was killed ({signal}), perhaps because memory ran out; restart it to go on."
    ),
    QT_TRANSLATE_NOOP("Sentences", "The engine crashed ({signal}); restart it to go on."),
    QT_TRANSLATE_NOOP("Sentences", "The engine was ended by {signal}; restart it to go on."),
    QT_TRANSLATE_NOOP("Sentences", "The engine said nothing for {seconds} s and was ended; restart it to go on."),
    QT_TRANSLATE_NOOP("Sentences", "The engine was ended on request."),
    QT_TRANSLATE_NOOP("Sentences", "The transcript cannot be written: {why}."),
    QT_TRANSLATE_NOOP("Sentences", "There is no file '{name}'."),
)
SENTENCES = tuple(str(sentence) for sentence in _LISTED)


def _pattern(sentence: str) -> re.Pattern[str]:
    pieces = re.split(r"{(\w+)}", sentence)
    named = (re.escape(piece) if number % 2 == 0 else f"(?P<{piece}>.+)" for number, piece in enumerate(pieces))
    return re.compile("".join(named), re.DOTALL)


_WITH_PLACES = tuple((_pattern(sentence), sentence) for sentence in SENTENCES if "{" in sentence)
_PLAIN = frozenset(sentence for sentence in SENTENCES if "{" not in sentence)


def say(text: str) -> str:
    """A sentence in the interface's language; what stands in its places is looked up as well."""
    if text in _PLAIN:
        return translate(CONTEXT, text)
    for pattern, sentence in _WITH_PLACES:
        if match := pattern.fullmatch(text):
            return fill(translate(CONTEXT, sentence), **{name: say(value) for name, value in match.groupdict().items()})
    return text


def state_line(status: Status) -> str:
    """The state line, in the interface's language."""
    return say(status.line)
