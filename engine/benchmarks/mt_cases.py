"""The 16 fixed prompts of the benchmark: short, medium and long sources, half of them with released target."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from engine.mt.contract import Source

NEW_TOKENS = 20

SHORT = (
    ("Good morning everyone, and welcome.", ""),
    ("We will start in five minutes.", "Wir beginnen"),
    ("Can you hear me at the back?", ""),
    ("This is the second half of the talk.", "Dies ist die zweite"),
    ("Thank you for the kind introduction.", ""),
    ("Let us look at the first figure.", "Betrachten wir"),
)
MEDIUM = (
    ("The river rises in the mountains and reaches the sea after three hundred miles of open country.", ""),
    ("When the committee met again in March, it had already become clear that the plan could not be paid for.",
     "Als der Ausschuss im März erneut zusammentrat,"),
    ("Most of the heat in this building is lost through the windows on the north side, which nobody replaced.", ""),
    ("She worked for eleven years on a grammar of the language, and when it was printed nobody reviewed it.",
     "Sie arbeitete elf Jahre lang an einer Grammatik"),
    ("If you change the order of these two operations, the result stays the same, but the second becomes cheap.", ""),
    ("The trains on this line are slower than they were before the war, although the engines are much stronger.",
     "Die Züge auf dieser Strecke sind langsamer"),
)  # fmt: skip
LONG = (
    ("What we found, and this surprised us more than anything else in the study, is that people who had read the "
     "instructions made just as many mistakes as people who had not, that they made them in the same places, and that "
     "they were, if anything, more certain of having made none, which is why I do not believe in longer manuals.", ""),
    ("In the spring of that year the harbour was closed for repairs, the fishing boats moved to the next town on the "
     "coast, and when the work was finished two summers later only a third of them came back, because in the meantime "
     "the families had found schools, houses and new customers there and saw no reason to begin all over again.",
     "Im Frühjahr jenes Jahres wurde der Hafen wegen Reparaturen geschlossen,"),
    ("A translation that appears while someone is still speaking has to live with a difficulty that no written "
     "translation knows, since the end of the sentence, which may turn its meaning around, has not been said yet, and "
     "whoever waits for it is safe but late, while whoever does not wait is early and has to take words back.", ""),
    ("The measurements were repeated on nine days, with three instruments, by people who did not know what the others "
     "had read, and the spread between the days was larger than that between the instruments or the people, so that we "
     "have to conclude that it is the thing itself that changes and not the way in which we happen to look at it.",
     "Die Messungen wurden an neun Tagen mit drei Instrumenten wiederholt,"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """One prompt in tokens, the released target at its end; positions as in `capture.request.RowRequest`."""

    name: str
    ids: tuple[int, ...]
    prompt_tokens: int
    source_start: int
    source_tokens: int


def random_cases(vocabulary: int, seed: int = 16) -> list[Case]:
    """Prompts of the same shape without a tokeniser: a common instruction, a source, an opening, a prefill."""
    rng = random.Random(seed)
    low, high = vocabulary // 8, vocabulary // 2

    def tokens(count: int) -> list[int]:
        return [rng.randrange(low, high) for _ in range(count)]

    instruction, opening = tokens(80), tokens(6)
    cases = []
    for kind, pairs, source, prefill in (("short", SHORT, 9, 3), ("medium", MEDIUM, 24, 9), ("long", LONG, 68, 14)):
        for number, (_, target) in enumerate(pairs):
            count = source + rng.randrange(-source // 8, source // 8 + 1)
            prompt = [*instruction, *tokens(count), *opening]
            ids = [*prompt, *(tokens(prefill) if target else [])]
            cases.append(Case(f"{kind}-{number}{'-prefill' if target else ''}", tuple(ids), len(prompt), 80, count))
    return cases


def model_cases(tokens: Any, layout: Any) -> list[Case]:
    """The fixed sentences in a model's own prompt. `tokens`: an `HfTokens`, `layout`: a `PromptLayout`."""
    from engine.mt.drafting import prepare

    cases = []
    for kind, pairs in (("short", SHORT), ("medium", MEDIUM), ("long", LONG)):
        for number, (text, target) in enumerate(pairs):
            prepared = prepare(layout, Source(tuple(text.split()), "en", "de"), tokens.tokenise, 1 << 20, 1 << 20)
            inside = [at for at, unit in enumerate(prepared.units) if unit >= 0]
            prefill = tokens.encode(layout.target_lead + target) if target else []
            name = f"{kind}-{number}{'-prefill' if target else ''}"
            span = inside[0], inside[-1] + 1 - inside[0]
            cases.append(Case(name, (*prepared.ids, *prefill), len(prepared.ids), *span))
    return cases
