"""Training examples: reproducible, half sentences with what they support, loss on the rest of the answer alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.finetune.align import read_links, write_links
from engine.finetune.examples import draw_examples, full, half
from engine.finetune.rows import FinetuneError, read_rows
from tests.engine.finetune.material import write_material


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_material(tmp_path)


def test_the_same_seed_and_epoch_give_the_same_examples(folder: Path) -> None:
    rows, links = read_rows(folder), read_links(folder)
    first, counts = draw_examples(rows, links, seed=1, epoch=0)
    assert draw_examples(rows, links, seed=1, epoch=0)[0] == first
    assert draw_examples(rows, links, seed=1, epoch=1)[0] != first
    assert draw_examples(rows, links, seed=2, epoch=0)[0] != first
    assert counts["full"] == 2 * 4 * len(rows)
    assert counts["joined"] == 4 * len(rows)
    assert counts["half"] == 3 * 4 * len(rows)
    assert 0 < counts["history"] < len(first) / 4
    assert 0 < counts["context"] < counts["released"]


def test_an_answer_holds_what_its_source_supports_and_no_more(folder: Path) -> None:
    """A word of the material is translated by itself with the language's code behind it."""
    for example in draw_examples(read_rows(folder), read_links(folder), seed=1, epoch=0)[0]:
        language = example.source.target_lang
        said = {unit.strip(".,;:!?…").casefold() for unit in example.source.units}
        answer = f"{example.released} {example.rest}".split()
        for word in answer:
            assert word.strip(".").removesuffix(language).casefold() in said
        if example.kind == "full":
            assert answer
            assert answer[-1].endswith(".")


def test_whole_and_half_sentences_to_score(folder: Path) -> None:
    row = next(row for row in read_rows(folder) if row.source == "Anna found seven keys.")
    whole = full(row, "de")
    assert (whole.source.text, whole.released) == ("Anna found seven keys.", "")
    assert whole.rest == "Annade foundde sevende keysde."
    begun = half(row, "de", read_links(folder))
    assert (begun.source.text, begun.rest) == ("Anna found", "Annade foundde")


def test_links_of_another_text_are_an_error(folder: Path) -> None:
    rows, links = read_rows(folder), read_links(folder)
    key = (rows[0].row_id, "de")
    links[key] = links[key][:-1]
    write_links(folder, links)
    with pytest.raises(FinetuneError, match="make them again"):
        draw_examples(rows, read_links(folder), seed=1, epoch=0)


def test_damaged_links_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FinetuneError, match=r"engine\.finetune align"):
        read_links(tmp_path)
    (tmp_path / "links.txt").write_text("row\tlanguage\tlinks\nabc\tde\t0 x\n", encoding="utf-8")
    with pytest.raises(FinetuneError, match="cannot be read"):
        read_links(tmp_path)


def test_links_survive_writing(folder: Path) -> None:
    links = {("a", "de"): ((0,), (), (1, 3)), ("b", "it"): ((),)}
    write_links(folder, links)
    assert read_links(folder) == links
