"""The whole way on a tiny checkpoint: train, export, read back, apply, evaluate."""

# ruff: noqa: E402 - what needs torch and peft comes behind the skips

from __future__ import annotations

import hashlib
import json
import random
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("peft")
pytest.importorskip("gguf")
pytest.importorskip("sacrebleu")

from tokenizers import Tokenizer

from engine.finetune import generate
from engine.finetune.__main__ import main
from engine.finetune.align import read_links
from engine.finetune.batches import IGNORED, batches, code, stack
from engine.finetune.examples import draw_examples
from engine.finetune.export import read_gguf, read_safetensors
from engine.finetune.rows import FinetuneError, read_rows
from engine.finetune.verify import same_files
from engine.finetune.weights import LowRank, add_low_rank, best_low_rank, check_tokeniser, find_base, matrices, plain
from engine.mt.hf_tokens import HfTokens
from engine.mt.prompt import TalksLayout
from tests.engine.finetune.material import write_material
from tests.engine.mt import tiny_models

pytestmark = pytest.mark.filterwarnings("ignore")  # of training libraries, about their own next versions


@pytest.fixture(scope="module", autouse=True)
def _short_and_on_one_thread() -> Iterator[None]:
    """What a random model says has no end; and threads only wait for one another in a model of this size."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generate, "NEW_TOKENS", 12)
        yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save("gemma3", tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_material(tmp_path_factory.mktemp("data"))


def _train(checkpoint: Path, data: Path, folder: Path, *more: str) -> list[dict[str, Any]]:
    log = folder / "training.jsonl"
    words = ["train", "--data", str(data), "--model", str(checkpoint), "--output", str(folder / "adapter")]
    words += ["--log", str(log), "--device", "cpu", "--rank", "4", "--development", "2", "--batch-tokens", "2048"]
    assert main([*words, *more]) == 0
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def trained(
    checkpoint: Path, data: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("trained")
    return folder, _train(checkpoint, data, folder, "--epochs", "2", "--rate", "0.02", "--dropout", "0")


def test_training_learns_and_says_so(trained: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, lines = trained
    losses = [line["loss"] for line in lines if line["what"] == "development"]
    assert len(losses) == 3
    assert losses[-1] < 0.8 * losses[0]
    drawn = [line for line in lines if line["what"] == "examples"]
    assert [line["epoch"] for line in drawn] == [0, 1]
    assert all(line["padding"] < 0.2 for line in drawn)
    assert next(line for line in lines if line["what"] == "verified")["matrices"] == 2 * 7 * tiny_models.LAYERS
    assert (folder / "training.png").read_bytes().startswith(b"\x89PNG")


def test_trainings_are_compared(
    trained: tuple[Path, list[dict[str, Any]]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = trained[0] / "training.jsonl"
    worse = tmp_path / "worse.jsonl"
    lines = [line | {"score": line["score"] - 1} if "score" in line else line for line in trained[1]]
    worse.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert main(["compare", str(worse), str(log), "--best"]) == 0
    assert capsys.readouterr().out.strip() == str(log)
    assert main(["compare", str(worse), str(log)]) == 0
    assert "low rank 4, rate 0.02" in capsys.readouterr().out
    worse.write_text("{}", encoding="utf-8")
    assert main(["compare", str(worse)]) == 2


def test_both_files_hold_the_same_and_the_note_names_them(checkpoint: Path, trained: tuple[Path, Any]) -> None:
    folder = trained[0] / "adapter"
    ours, (theirs, metadata) = read_safetensors(folder / "adapter.safetensors"), read_gguf(folder / "adapter.gguf")
    assert same_files(folder) == len(ours) == len(theirs)
    assert ours["model.layers.3.mlp.down_proj A"].shape == (4, 48)
    assert theirs["model.layers.3.mlp.down_proj B"].dtype == np.float16
    assert metadata["general.type"] == "adapter"
    assert metadata["general.architecture"] == "gemma3"
    assert metadata["adapter.type"] == "lora"
    assert metadata["adapter.lora.alpha"] == 8.0
    note = tomllib.loads((folder / "adapter.toml").read_text(encoding="utf-8"))
    assert (note["rank"], note["alpha"], note["layout"]) == (4, 8.0, "talks-1")
    assert note["base_sha256"] == hashlib.sha256((checkpoint / "model.safetensors").read_bytes()).hexdigest()
    for kind in ("gguf", "safetensors"):
        assert note[f"{kind}_sha256"] == hashlib.sha256((folder / f"adapter.{kind}").read_bytes()).hexdigest()


def test_a_damaged_adapter_is_found(trained: tuple[Path, Any], tmp_path: Path) -> None:
    for name in ("adapter.gguf", "adapter.safetensors"):
        content = bytearray((trained[0] / "adapter" / name).read_bytes())
        if name.endswith("gguf"):
            content[-5] ^= 64
        (tmp_path / name).write_bytes(content)
    with pytest.raises(FinetuneError, match="differ in"):
        same_files(tmp_path)


def test_the_same_seed_trains_the_same_adapter(checkpoint: Path, data: Path, tmp_path: Path) -> None:
    digests = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        _train(checkpoint, data, tmp_path / name, "--epochs", "1", "--max-steps", "3")
        digests.append(hashlib.sha256((tmp_path / name / "adapter" / "adapter.safetensors").read_bytes()).hexdigest())
    assert digests[0] == digests[1]


def test_whole_layers_are_trained_and_reduced(checkpoint: Path, data: Path, tmp_path: Path) -> None:
    lines = _train(checkpoint, data, tmp_path, "--full", "--epochs", "1", "--rate", "0.002")
    losses = [line["loss"] for line in lines if line["what"] == "development"]
    assert losses[1] < losses[0]
    assert losses[2] < losses[0], "the reduced change keeps some of what was learnt"
    (reduced,) = (line for line in lines if line["what"] == "reduced")
    assert 0.2 < reduced["kept"] < 1
    assert same_files(tmp_path / "adapter")


def test_evaluation_scores_base_and_adapted(
    checkpoint: Path, data: Path, trained: tuple[Path, Any], tmp_path: Path
) -> None:
    words = ["evaluate", "--data", str(data), "--model", str(checkpoint), "--adapter", str(trained[0] / "adapter")]
    words += ["--scores", str(tmp_path / "scores.json"), "--outputs", str(tmp_path / "outputs.tsv"), "--device", "cpu"]
    assert main([*words, "--limit", "3", "--work", str(tmp_path)]) == 0
    scores = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))
    for system in ("few-shot base", "adapted"):
        assert scores[system]["held-out de"]["sentences"] == 3
        assert scores[system].keys() >= {"held-out it", "talks de", "talks it"}
    assert scores["few-shot base"]["held-out de"] != scores["adapted"]["held-out de"]
    assert len((tmp_path / "outputs.tsv").read_text(encoding="utf-8").splitlines()) == 1 + 2 * 6 * 3


def test_an_adapter_for_other_weights_is_refused(
    data: Path, trained: tuple[Path, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tiny_models.save("qwen3", tmp_path / "other")
    words = ["evaluate", "--data", str(data), "--model", str(other), "--adapter", str(trained[0] / "adapter")]
    assert main([*words, "--scores", str(tmp_path / "scores.json"), "--device", "cpu"]) == 2
    assert "is for" in capsys.readouterr().err
    assert not (tmp_path / "scores.json").exists()


# ------------------------------------------------------------ parts


def test_tokens_are_those_of_the_translator(data: Path) -> None:
    tokeniser, layout = tiny_models.wrapped("gemma_like"), TalksLayout()
    own = HfTokens(tokeniser, "gemma3_text", ())
    examples = draw_examples(read_rows(data), read_links(data), seed=1, epoch=0)[0][:200]
    for example, coded in zip(examples, code(examples, layout, tokeniser), strict=True):
        prompt = own.tokenise(layout.render(example.source)).ids
        released = own.encode(layout.target_lead + example.released) if example.released else []
        rest = own.encode(layout.target_lead + example.rest) if example.rest else []
        end = own.encode("\n")
        assert coded.ids == prompt + released + rest + end
        assert coded.learnt == len(rest) + len(end)


def test_batches_hold_every_example_once_and_learn_the_answers_alone(data: Path) -> None:
    tokeniser = tiny_models.wrapped("gemma_like")
    coded = code(draw_examples(read_rows(data), read_links(data), 1, 0)[0], TalksLayout(), tokeniser)
    groups = list(batches(coded, 1024, random.Random(1)))
    assert sorted(id(example) for group in groups for example in group) == sorted(map(id, coded))
    assert all(len(group) * max(len(example.ids) for example in group) <= 1024 for group in groups)
    group = groups[0]
    batch = stack(group, 0, "cpu")
    for at, example in enumerate(group):
        assert int((batch.labels[at] != IGNORED).sum()) == example.learnt
        places = torch.nonzero(batch.labels[at] != IGNORED)[:, 0]
        assert batch.labels[at, places].tolist() == batch.ids[at, places + 1].tolist() == example.ids[-example.learnt :]
        assert int(batch.mask[at].sum()) == len(example.ids)


def test_new_matrices_change_nothing_and_can_be_put_out_of_use(checkpoint: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(checkpoint).eval()
    ids = torch.tensor([[2, 20, 30, 40]])
    with torch.inference_mode():
        before = model(input_ids=ids).logits
        add_low_rank(model, LowRank(2, 4.0, 0.0, ("q_proj", "down_proj")))
        assert torch.equal(model(input_ids=ids).logits, before)
        for a, b in matrices(model).values():
            a.fill_(0.1)
            b.fill_(0.1)
        assert not torch.allclose(model(input_ids=ids).logits, before)
        with plain(model):
            assert torch.equal(model(input_ids=ids).logits, before)
    assert {name.split(".")[-1] for name in matrices(model)} == {"q_proj", "down_proj"}
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert trained
    assert all("lora_" in name for name in trained)


def test_the_nearest_low_rank_change() -> None:
    torch.manual_seed(1)
    change = torch.randn(12, 3) @ torch.randn(3, 8)
    a, b = best_low_rank(change, 3, scale=2.0)
    assert (a.shape, b.shape) == ((3, 8), (12, 3))
    assert torch.allclose(2.0 * b @ a, change, atol=1e-4)
    a, b = best_low_rank(change, 2, scale=2.0)
    assert 0 < float((2.0 * b @ a - change).norm()) < float(change.norm())


def test_a_tokeniser_that_spells_is_refused() -> None:
    tokeniser = tiny_models.wrapped("gemma_like")
    check_tokeniser(tokeniser)
    spelling = json.loads(tokeniser.backend_tokenizer.to_str())
    spelling["model"]["merges"] = []
    with pytest.raises(FinetuneError, match="letter by letter"):
        check_tokeniser(transformers.PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(spelling))))


def test_parts_of_other_weights_are_refused(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    with pytest.raises(FinetuneError, match="no parts"):
        find_base(None, tmp_path / "parts", tmp_path)
    (tmp_path / "parts" / "a.part00").write_bytes(b"GGUF")
    with pytest.raises(FinetuneError, match="its sha256 is"):
        find_base(None, tmp_path / "parts", tmp_path)
