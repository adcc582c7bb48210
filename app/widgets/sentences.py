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
    QT_TRANSLATE_NOOP("Sentences", "No microphone"),
    QT_TRANSLATE_NOOP("Sentences", "There is no microphone; connect one, or give an audio file."),
    QT_TRANSLATE_NOOP("Sentences", "There is no microphone."),
    QT_TRANSLATE_NOOP("Sentences", "There is no microphone '{name}'; there are: {others}."),
    QT_TRANSLATE_NOOP("Sentences", "The sound system does not answer."),
    QT_TRANSLATE_NOOP("Sentences", "The sound system does not answer: a lost device still holds it."),
    QT_TRANSLATE_NOOP("Sentences", "The microphone '{name}' cannot be opened: {why}."),
    QT_TRANSLATE_NOOP("Sentences", "The microphone '{name}' did not open within {seconds} s."),
    QT_TRANSLATE_NOOP("Sentences", "'{name}' is a folder; give an audio file."),
    QT_TRANSLATE_NOOP("Sentences", "'{name}' cannot be read: {why}."),
    QT_TRANSLATE_NOOP("Sentences", "'{name}' is not an audio file that can be played; use wav, flac or ogg."),
    QT_TRANSLATE_NOOP("Sentences", "'{name}' holds no sound; give a file that is longer than 0 s."),
    QT_TRANSLATE_NOOP(
        "Sentences", "The PortAudio library is missing; install it with `sudo apt install libportaudio2`."
    ),
    QT_TRANSLATE_NOOP("Sentences", "The engine ended the session by itself."),
    QT_TRANSLATE_NOOP("Sentences", "{trouble}: it is looked for."),
    QT_TRANSLATE_NOOP("Sentences", "{trouble}: connect it again, or choose another; the session goes on."),
    QT_TRANSLATE_NOOP("Sentences", "{trouble}: '{name}' is used until it is back."),
    QT_TRANSLATE_NOOP("Sentences", "The microphone '{name}' was disconnected"),
    QT_TRANSLATE_NOOP("Sentences", "The microphone '{name}' went silent"),
    QT_TRANSLATE_NOOP("Sentences", "The microphone '{name}' is not connected"),
    QT_TRANSLATE_NOOP("Sentences", "The sound of '{name}' failed ({error}); the log has the details."),
    QT_TRANSLATE_NOOP("Sentences", "The page for browsers cannot use port {port} ({why}): choose another one."),
    QT_TRANSLATE_NOOP("Sentences", "Loading {name}"),
    QT_TRANSLATE_NOOP("Sentences", "Warming up {name}"),
    QT_TRANSLATE_NOOP("Sentences", "{name} is ready"),
    QT_TRANSLATE_NOOP("Sentences", "connecting to the MT server"),
    QT_TRANSLATE_NOOP("Sentences", "A moment of audio could not be processed and was left out."),
    QT_TRANSLATE_NOOP("Sentences", "A moment of speech could not be recognised and was left out."),
    QT_TRANSLATE_NOOP("Sentences", "A piece of the translation failed; the log has the details."),
    QT_TRANSLATE_NOOP("Sentences", "No head set for {direction}: using the shared heads of {model}."),
    QT_TRANSLATE_NOOP(
        "Sentences",
        "The heads were found in {model} and are used with {name}: if that is another model, find its own with "
        "`surtitle calibrate`.",
    ),
    QT_TRANSLATE_NOOP(
        "Sentences",
        "The context is too long for the translator's prompt: {left_out} of its {words} words are left out; shorten "
        "it, or set a larger translator.context_tokens.",
    ),
)
SENTENCES = tuple(str(sentence) for sentence in _LISTED)


def _pattern(sentence: str) -> re.Pattern[str]:
    pieces = re.split(r"{(\w+)}", sentence)
    named = (re.escape(piece) if number % 2 == 0 else f"(?P<{piece}>.+)" for number, piece in enumerate(pieces))
    return re.compile("".join(named), re.DOTALL)


_WITH_PLACES = tuple((_pattern(sentence), sentence) for sentence in SENTENCES if "{" in sentence)
_BORDER = re.compile(r"(?<=[.!?]) (?=[A-Z'])")
_PLAIN = frozenset(sentence for sentence in SENTENCES if "{" not in sentence)


def say(text: str) -> str:
    """A sentence, or several, in the interface's language; what stands in its places is looked up as well."""
    if text in _PLAIN:
        return translate(CONTEXT, text)
    return _with_places(text) or " ".join(_with_places(one) or _plain(one) for one in _BORDER.split(text))


def _plain(text: str) -> str:
    return translate(CONTEXT, text) if text in _PLAIN else text


def _with_places(text: str) -> str | None:
    for pattern, sentence in _WITH_PLACES:
        if match := pattern.fullmatch(text):
            return fill(translate(CONTEXT, sentence), **{name: say(value) for name, value in match.groupdict().items()})
    return None


def state_line(status: Status) -> str:
    """The state line, in the interface's language."""
    return say(status.line)
