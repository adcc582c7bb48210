"""What the model is trained on: prompts with answers, drawn anew for every epoch from sentences and their links.

Every draw is a function of the seed, the epoch, the row and the language alone.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from engine.alignatt.units import separator, split_units
from engine.finetune.align import Linked, Words, linked
from engine.finetune.cut import supported
from engine.finetune.rows import SOURCE, TARGETS, Row
from engine.mt.contract import Source

CUTS = 3  # half sentences of a pair and epoch
RELEASED = 0.5  # of the examples continue a released beginning
HISTORY, CONTEXT = 0.1, 0.04
# What recognition does to text: a mark at the end of a half sentence, the last mark lost, no case and marks at all,
# a hesitation kept.
STRAY_MARK, LOST_MARK, BARE, HESITATION = 0.12, 0.4, 0.04, 0.04
MARKS = ".,;:!?…"
HESITATIONS = ("uh,", "um,", "er,", "well,", "you know,")
CONTEXT_WORDS = 6


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt's source, the released beginning of the answer (maybe empty), and the rest, which is learnt.

    `kind`: "full", "half" or "joined" (two sentences in one utterance, the second maybe half).
    """

    source: Source
    released: str
    rest: str
    kind: str


def full(row: Row, language: str) -> Example:
    """A whole sentence without anything around it, as models are scored on."""
    return _example(split_units(row.source, SOURCE), split_units(row.texts[language], language), language, 0, "full")


def half(row: Row, language: str, links: dict[tuple[str, str], Words]) -> Example:
    """The first half of a sentence's words and what they support, as models are scored on."""
    pair = linked(row, language, links)
    cut = len(pair.source) // 2
    return _example(pair.source[:cut], _begun(pair, cut, language), language, 0, "half")


def draw_examples(
    rows: Sequence[Row], links: dict[tuple[str, str], Words], seed: int, epoch: int
) -> tuple[list[Example], Counter[str]]:
    """The examples of an epoch, and how many there are of each kind."""
    by_file: dict[str, list[Row]] = {}
    for row in rows:
        by_file.setdefault(row.file, []).append(row)
    examples = [
        example
        for row in rows
        for language in TARGETS
        for example in _of_pair(
            row, language, links, by_file[row.file], random.Random(_key(seed, epoch, row, language))
        )
    ]
    counts = Counter(example.kind for example in examples)
    counts["released"] = sum(bool(example.released) for example in examples)
    counts["nothing to add"] = sum(not example.rest for example in examples)
    counts["history"] = sum(bool(example.source.history) for example in examples)
    counts["context"] = sum(bool(example.source.context) for example in examples)
    return examples, counts


def _key(seed: int, epoch: int, row: Row, language: str) -> str:
    return f"{seed} {epoch} {row.row_id} {language}"


def _of_pair(
    row: Row, language: str, links: dict[tuple[str, str], Words], neighbours: Sequence[Row], chance: random.Random
) -> list[Example]:
    pair = linked(row, language, links)
    size = len(pair.source)
    made = [full(row, language), _made(pair, size, language, "full", chance, True)]
    for cut in chance.sample(range(1, size), min(CUTS, size - 1)):
        made.append(_made(pair, cut, language, "half", chance, chance.random() < RELEASED))
    other = linked(chance.choice(neighbours), language, links)
    cut = size if size < 2 or chance.random() < RELEASED else chance.randrange(1, size)
    joined = Linked(
        other.source + pair.source,
        other.target + pair.target,
        other.links + tuple(tuple(at + len(other.source) for at in word) for word in pair.links),
    )
    made.append(_made(joined, len(other.source) + cut, language, "joined", chance, chance.random() < RELEASED))
    return [_surrounded(example, language, neighbours, chance) for example in made]


def _made(pair: Linked, cut: int, language: str, kind: str, chance: random.Random, release: bool) -> Example:
    """An example of the first `cut` source words, with what recognition may do to them."""
    source, target = list(pair.source[:cut]), _begun(pair, cut, language)
    if cut < len(pair.source):
        if chance.random() < LOST_MARK:
            source[-1] = source[-1].rstrip(MARKS) or source[-1]
        if chance.random() < STRAY_MARK and source[-1][-1] not in MARKS:
            source[-1] += chance.choice((".", ".", "...", ","))
    released = chance.randint(0, len(target)) if release and target else 0
    if chance.random() < BARE:
        source = [word.casefold().strip(MARKS) or word for word in source]
    if chance.random() < HESITATION:
        source.insert(chance.randrange(len(source)), chance.choice(HESITATIONS))
        source = split_units(" ".join(source), SOURCE)
    return _example(source, target, language, released, kind)


def _begun(pair: Linked, cut: int, language: str) -> list[str]:
    """Target words that the first source words support. What is not the end gets no mark of the end."""
    target = list(pair.target[: supported(pair, cut, language)])
    if cut < len(pair.source) and len(target) == len(pair.target):
        target[-1] = target[-1].rstrip(MARKS) or target[-1]
    return target


def _example(source: Sequence[str], target: Sequence[str], language: str, released: int, kind: str) -> Example:
    return Example(
        Source(tuple(source), SOURCE, language, separator(SOURCE)),
        " ".join(target[:released]),
        " ".join(target[released:]),
        kind,
    )


def _surrounded(example: Example, language: str, neighbours: Sequence[Row], chance: random.Random) -> Example:
    """The example with an earlier utterance or a line of context, now and then."""
    source = example.source
    history: tuple[tuple[str, str], ...] = ()
    context = ""
    if chance.random() < HISTORY:
        earlier = chance.choice(neighbours)
        history = ((earlier.source, earlier.texts[language]),)
    if chance.random() < CONTEXT:
        said = [*source.units, *chance.choice(neighbours).source.split()]
        longest = sorted({word.strip(MARKS) for word in said}, key=lambda word: (-len(word), word))[:CONTEXT_WORDS]
        context = ", ".join(chance.sample(longest, len(longest)))
    if not history and not context:
        return example
    around = Source(source.units, SOURCE, language, source.separator, context, history)
    return Example(around, example.released, example.rest, example.kind)
