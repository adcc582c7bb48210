"""What speech models write that nobody said: loops, and the context they were given. Pure; all recognisers use it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.asr.agreement import normalise
from engine.asr.contract import Word

# The same few words so many times in a row and on to the end of the text are a loop.
LOOP_NGRAM = 6
LOOP_TIMES = 6
# Inside a text without spaces, the same few characters: people laugh for less long.
LOOP_CHARACTERS = 20
LOOP_REPEATS = 20
_REPEATED = re.compile(rf"(.{{1,{LOOP_CHARACTERS}}}?)\1{{{LOOP_REPEATS - 1},}}", re.DOTALL)
# So many words of the context, in its order, are its echo when they came faster than anybody speaks.
ECHO_WORDS = 4
ECHO_WORDS_PER_S = 8.0


def without_loops(words: Sequence[Word]) -> list[Word]:
    """The words up to a loop, of which the first round stays.

    A loop is the same few words `LOOP_TIMES` times in a row and on to the end of the text: the model does not leave it
    by itself. What people repeat, they leave again.
    """
    spoken = [normalise(word.text) for word in words]
    for size in range(1, LOOP_NGRAM + 1):
        start = len(spoken) - size
        while start > 0 and spoken[start - 1] == spoken[start - 1 + size]:
            start -= 1
        if len(spoken) - start >= size * LOOP_TIMES:
            return list(words[: start + size])
    return list(words)


def without_repeats(text: str) -> str:
    """The text with one round of every run of characters that is repeated `LOOP_REPEATS` times or more."""
    return _REPEATED.sub(r"\1", text)


def without_echo(words: Sequence[Word], context: Sequence[str]) -> list[Word]:
    """The words without runs that repeat the context (its words, normalised) and find no room in the audio.

    A model that hears nothing it knows writes down what it was told instead. A speaker does say the title of the talk
    or a list of its terms, but needs time for it: only runs of `ECHO_WORDS` or more words that come faster than
    `ECHO_WORDS_PER_S` go. O(words x context).
    """
    if len(context) < ECHO_WORDS:
        return list(words)
    spoken = [normalise(word.text) for word in words]
    kept: list[Word] = []
    at = 0
    while at < len(words):
        count = _longest_run(spoken, at, context)
        if count >= ECHO_WORDS and _too_fast(words[at : at + count]):
            at += count
            continue
        kept.append(words[at])
        at += 1
    return kept


def _longest_run(spoken: Sequence[str], at: int, context: Sequence[str]) -> int:
    """How many words from `at` on the context has in this order, at the place where it has most of them."""
    longest = 0
    for start in range(len(context)):
        count = 0
        while (
            at + count < len(spoken) and start + count < len(context) and spoken[at + count] == context[start + count]
        ):
            count += 1
        longest = max(longest, count)
    return longest


def _too_fast(words: Sequence[Word]) -> bool:
    return len(words) > ECHO_WORDS_PER_S * (words[-1].end_s - words[0].start_s)
