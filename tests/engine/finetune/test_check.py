"""The check that training and judged sentences are apart; on the shipped ones too, by another way of counting."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.finetune.__main__ import main
from engine.finetune.check import Judged, alone, judged_sentences, manner, overlaps, read_talks
from engine.finetune.rows import HELD_OUT, Row, parts, read_held_out, read_rows
from engine.presets import resources

LONG = "We trained a rather small model on the sentences of two talks last week."


def _row(text: str) -> Row:
    return Row("file", 2, {"en": text, "de": "d", "fr": "f", "es": "e", "it": "i"})


@pytest.mark.parametrize(
    "said",
    [
        LONG,
        LONG.upper().replace(".", " !"),
        "Yes, a rather small model on the sentences of two others, you know.",
    ],
)
def test_equal_and_nearly_equal_sentences_are_found(said: str) -> None:
    assert Judged([LONG]).near(said) == LONG


def test_seven_words_in_a_row_are_no_overlap() -> None:
    assert Judged([LONG]).near("They trained a rather small model on the roof.") is None


def test_short_sentences_are_compared_by_their_words() -> None:
    judged = Judged(["Thank you very much indeed.", "Yes.", "What did we learn from this?"])
    assert judged.near("Thank you very, very much indeed!") is not None
    assert judged.near("What did we find in this?") is None
    assert judged.near("Yes") is not None, "equal is equal"
    assert judged.near("Yes, yes.") is None


def test_every_language_is_compared() -> None:
    judged = judged_sentences([_row("Held out.")], [{"en": ["A talk."], "de": ["d"]}])
    assert [overlap.language for overlap in overlaps([_row("Something else.")], judged)] == ["de", "fr", "es", "it"]


def test_only_rows_that_stand_alone_can_be_set_aside() -> None:
    rows = [
        _row(text) for text in (LONG, f"Yes. {LONG}", "Does that help you?", "And does that help you?", "Not at all.")
    ]
    rows = [Row("file", at, {"en": row.source, "de": f"d{at}"}) for at, row in enumerate(rows)]
    assert [row.source for row in alone(rows)] == ["Not at all."]
    rows[4] = Row("file", 4, {"en": "Not at all.", "de": "d3"})
    assert not alone(rows), "any language counts"


def test_manner_of_sentences() -> None:
    found = manner(["one two three four five", "One two three four five.", "six seven"])
    assert (found.sentences, found.words, found.shortest, found.longest) == (3, 12, 2, 5)
    assert found.distinct == 0.5
    assert found.duplicates == 1
    assert found.repeated == (("one two three four five", 2),)


def test_the_command_fails_on_an_overlap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "\n".join(f"{text}\td{text}\tf{text}\te{text}\ti{text}" for text in ("alpha", "beta", "gamma"))
    (tmp_path / "rows.tsv").write_text(f"en\tde\tfr\tes\tit\n{rows}\n", encoding="utf-8")
    assert main(["split", "--data", str(tmp_path), "--per-file", "1"]) == 0
    assert main(["check", "--data", str(tmp_path)]) == 0
    talks = tmp_path / "talks"
    talks.mkdir()
    (talks / "en.txt").write_text("alpha\nbeta\ngamma\n", encoding="utf-8")
    assert main(["check", "--data", str(tmp_path), "--talks", str(talks)]) == 1
    assert "2 training sentences are too close" in capsys.readouterr().out


# ------------------------------------------------------------ the shipped sentences

shipped = pytest.mark.skipif(
    not (resources() / "training" / HELD_OUT).is_file(), reason="no sentences are set aside in this checkout"
)


@shipped
def test_shipped_training_sentences_are_apart_from_what_models_are_judged_by() -> None:
    folder = resources() / "training"
    use = parts(read_rows(folder), read_held_out(folder), development_per_file=20)
    talks = read_talks(resources() / "evaluation")
    assert len(use.held_out) == 200
    for language in ("en", "de", "fr", "es", "it"):
        judged = [row.texts[language] for row in use.held_out] + talks.get(language, [])
        runs = {run for text in judged for run in _runs(text)}
        for row in (*use.train, *use.development):
            shared = _runs(row.texts[language]) & runs
            assert not shared, f"{row.file} line {row.number} ({language}): {shared}"
    assert not overlaps((*use.train, *use.development), judged_sentences(use.held_out, [talks]))


def _runs(text: str) -> set[str]:
    """Runs of eight words of a text, and the text itself: counted otherwise than in the engine."""
    said = re.sub(r"[\W_]+", " ", text.lower()).split()
    return {" ".join(said[at : at + 8]) for at in range(len(said) - 7)} | {" ".join(["whole:", *said])}


@shipped
def test_shipped_training_sentences_are_varied() -> None:
    rows = read_rows(resources() / "training")
    found = manner([row.source for row in rows])
    assert found.distinct >= 0.9
    assert found.duplicates == 0
