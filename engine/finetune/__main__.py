"""`python -m engine.finetune COMMAND …`: set rows aside, check and align sentences, train, evaluate."""

from __future__ import annotations

import argparse
import json
import logging
import random
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from engine.files import write_atomically
from engine.finetune import align as aligning
from engine.finetune.check import alone, judged_sentences, manner, overlaps, read_talks
from engine.finetune.rows import (
    COLUMNS,
    SEED,
    FinetuneError,
    Parts,
    draw,
    parts,
    read_held_out,
    read_rows,
    write_held_out,
)
from engine.mt.contract import TranslationError
from engine.presets import resources

if TYPE_CHECKING:
    from engine.finetune.weights import Base

HELD_OUT_PER_FILE = 50
DEVELOPMENT_PER_FILE = 20
NAME = "gemma-3-270m-talks"
TRAINING = "resources/training: sentences written for this project, English to German, French, Spanish and Italian"
LICENCE = (
    "Apache-2.0 for what was trained; it is a derivative of Gemma 3 270M: "
    "Gemma is provided under and subject to the Gemma Terms of Use found at ai.google.dev/gemma/terms"
)
EXTRAS = {"eflomal": "calibration", "sacrebleu": "evaluation", "matplotlib": "evaluation"}


def main(arguments: list[str] | None = None) -> int:
    """Run a command. Status 2 and one sentence for what cannot be used, 1 when a check found something."""
    args = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        status: int = args.run(args)
    except (FinetuneError, TranslationError) as error:
        print(error, file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        print(
            f"{package} is not installed: pip install 'surtitle[{EXTRAS.get(package, 'finetune')}]'.", file=sys.stderr
        )
        return 2
    except OSError as error:
        print(f"{error.filename} cannot be read or written ({error.strerror or error}).", file=sys.stderr)
        return 2
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine.finetune", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, run: object, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        made.set_defaults(run=run)
        made.add_argument("--data", type=Path, default=resources() / "training", help="folder of the sentences")
        made.add_argument("--seed", type=int, default=SEED)
        return made

    split = command("split", _split, "set rows aside, once, before anything is trained")
    split.add_argument("--files", nargs="+", help="names without .tsv (default: all)")
    split.add_argument("--per-file", type=int, default=HELD_OUT_PER_FILE)

    check = command("check", _check, "prove that judged sentences are not trained on; say what the sentences are like")
    check.add_argument("--talks", type=Path, action="append", default=[resources() / "evaluation"], help="more talks")
    check.add_argument("--json", action="store_true", help="one JSON object")

    command("align", _align, "word links of all rows (eflomal)")

    train = command("train", _train, "train an adapter and write it")
    _weights(train)
    train.add_argument("--output", type=Path, required=True, help="folder of the adapter")
    train.add_argument("--log", type=Path, required=True, help="JSON Lines; the curve is drawn beside it as PNG")
    train.add_argument("--name", default=NAME)
    train.add_argument("--epochs", type=int, default=5)
    train.add_argument("--rate", type=float, default=6e-4, help="highest learning rate")
    train.add_argument("--rank", type=int, default=28)
    train.add_argument("--alpha", type=float, help="default: twice the rank")
    train.add_argument("--dropout", type=float, default=0.05)
    train.add_argument("--modules", help="linear layers, with commas (default: all seven of a block)")
    train.add_argument("--batch-tokens", type=int, default=8192)
    train.add_argument("--full", action="store_true", help="train whole layers, then reduce the change to that rank")
    train.add_argument("--data-fraction", type=float, default=1.0, help="share of the rows, for a learning curve")
    train.add_argument("--development", type=int, default=DEVELOPMENT_PER_FILE, help="rows of each file")
    train.add_argument("--max-steps", type=int, help="end early, for a trial")

    score = command("evaluate", _evaluate, "score an adapter beside the few-shot base")
    _weights(score)
    score.add_argument("--adapter", type=Path, required=True, help="folder of the adapter")
    score.add_argument("--talks", type=Path, default=resources() / "evaluation")
    score.add_argument("--scores", type=Path, required=True, help="JSON file to write")
    score.add_argument("--outputs", type=Path, help="TSV file of every translation")
    score.add_argument("--limit", type=int, help="sentences of each set, for a trial")

    compare = commands.add_parser("compare", help="trainings by the best score of their development rows, best first")
    compare.add_argument("logs", nargs="+", type=Path, metavar="LOG")
    compare.add_argument("--best", action="store_true", help="print the log of the best one alone")
    compare.set_defaults(run=_compare)
    return parser


def _weights(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", help="packaged name, GGUF file or transformers folder (default: the packaged one)")
    parser.add_argument("--parts", type=Path, help="folder with the parts of the packaged GGUF file, to be joined")
    parser.add_argument("--work", type=Path, default=Path("out/finetune"), help="where dequantised weights go")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="auto", choices=("auto", "float32", "bfloat16"))


def _split(args: argparse.Namespace) -> int:
    rows = read_rows(args.data)
    chosen = [row for row in alone(rows) if not args.files or row.file in args.files]
    drawn = draw(chosen, args.per_file, args.seed)
    path = write_held_out(args.data, drawn)
    print(f"Set aside {len(drawn)} of {len(rows)} rows: {path}.")
    return 0


def _use(args: argparse.Namespace, development: int) -> Parts:
    return parts(read_rows(args.data), read_held_out(args.data), development, args.seed)


def _check(args: argparse.Namespace) -> int:
    rows = read_rows(args.data)
    use = parts(rows, read_held_out(args.data), 0, args.seed)
    judged = judged_sentences(use.held_out, [read_talks(folder) for folder in args.talks])
    found = overlaps(use.train, judged)
    by_language = {language: manner([row.texts[language] for row in rows]) for language in COLUMNS}
    if args.json:
        report = {
            "rows": len(rows),
            "trained": len(use.train),
            "held_out": len(use.held_out),
            "judged": {language: len(sentences) for language, sentences in judged.items()},
            "overlaps": [str(overlap) for overlap in found],
            "manner": {
                language: {name: getattr(values, name) for name in values.__dataclass_fields__}
                for language, values in by_language.items()
            },
        }
        print(json.dumps(report, ensure_ascii=False, indent=2))
        return 1 if found else 0
    print(f"{len(rows)} rows: {len(use.train)} to train on, {len(use.held_out)} set aside.")
    for language, values in by_language.items():
        print(
            f"{language}: {values.words} words, {values.shortest} to {values.longest} a sentence "
            f"(median {values.median:g}), distinct 4-grams {values.distinct:.3f}, {values.duplicates} duplicates"
        )
        if values.repeated:
            print("    most repeated: " + "; ".join(f"{gram} ({count})" for gram, count in values.repeated))
    compared = ", ".join(f"{language} {len(sentences)}" for language, sentences in judged.items())
    print(f"Compared with judged sentences: {compared}.")
    for overlap in found:
        print(overlap)
    print(f"{len(found)} training sentences are too close to judged ones." if found else "No training sentence is.")
    return 1 if found else 0


def _align(args: argparse.Namespace) -> int:
    rows = list({row.row_id: row for row in read_rows(args.data)}.values())
    path = aligning.write_links(args.data, aligning.align(rows))
    print(f"Wrote {path}.")
    return 0


def _train(args: argparse.Namespace) -> int:
    from engine.finetune.curve import draw as draw_curve
    from engine.finetune.export import MODULES, Note
    from engine.finetune.train import Settings, Trainer
    from engine.finetune.weights import load_base
    from engine.mt.prompt import TalksLayout

    use = _use(args, args.development)
    talks = read_talks(resources() / "evaluation")
    close = {overlap.row.row_id for overlap in overlaps(use.train, judged_sentences(use.held_out, [talks]))}
    rows = [row for row in use.train if row.row_id not in close]
    if close:
        print(f"{len(close)} rows are too close to judged sentences and are left out; see `check`.", file=sys.stderr)
    if args.data_fraction < 1:
        kept = max(1, round(args.data_fraction * len(rows)))
        rows = random.Random(args.seed).sample(rows, kept)
    settings = Settings(
        seed=args.seed,
        epochs=args.epochs,
        rate=args.rate,
        batch_tokens=args.batch_tokens,
        rank=args.rank,
        alpha=args.alpha or 2.0 * args.rank,
        dropout=args.dropout,
        modules=tuple(args.modules.split(",")) if args.modules else MODULES,
        full=args.full,
        max_steps=args.max_steps,
    )
    base = _base(args)
    loaded = load_base(base, args.device, args.dtype, args.work)
    note = Note(args.name, TalksLayout().layout_id, f"{TRAINING} ({len(rows)} rows)", LICENCE)
    trainer = Trainer(loaded, base, settings, note, args.output, args.log, say=_say)
    trainer.run(rows, use.development, aligning.read_links(args.data))
    draw_curve(args.log, args.log.with_suffix(".png"))
    return 0


def _compare(args: argparse.Namespace) -> int:
    from engine.finetune.curve import summary

    found = sorted((summary(log) for log in args.logs), key=lambda one: -one.score)
    for one in found[:1] if args.best else found:
        print(one.log if args.best else one)
    return 0


def _evaluate(args: argparse.Namespace) -> int:
    from engine.finetune.evaluate import evaluate, sets
    from engine.finetune.export import NOTE, SAFETENSORS, read_safetensors
    from engine.finetune.weights import LowRank, load_base

    try:
        note = tomllib.loads((args.adapter / NOTE).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise FinetuneError(f"{args.adapter / NOTE} is no TOML: {error}.") from error
    numbers = read_safetensors(args.adapter / SAFETENSORS)
    modules = sorted({name.split(" ")[0].rsplit(".", 1)[1] for name in numbers})
    base = _base(args)
    if base.sha256 != note["base_sha256"]:
        raise FinetuneError(
            f"The adapter in {args.adapter} is for {note['base']} with sha256 {note['base_sha256']}, "
            f"and {base.path} has {base.sha256}."
        )
    chosen = sets(_use(args, 0).held_out, read_talks(args.talks))
    if args.limit:
        chosen = [
            type(part)(part.name, part.language, part.sources[: args.limit], part.references[: args.limit])
            for part in chosen
        ]
    loaded = load_base(base, args.device, args.dtype, args.work)
    shape = LowRank(int(note["rank"]), float(note["alpha"]), 0.0, tuple(modules))
    scores, outputs = evaluate(loaded, numbers, shape, chosen, _say)
    scores["adapter"] = {key: note[key] for key in ("name", "rank", "alpha", "safetensors_sha256", "training")}
    scores["device"] = _device_name(loaded.model.device)
    write_atomically(args.scores, json.dumps(scores, ensure_ascii=False, indent=2) + "\n")
    if args.outputs:
        header = ["system", "set", "language", "source", "reference", "whole", "half"]
        write_atomically(args.outputs, "\n".join("\t".join(line) for line in [header, *outputs]) + "\n")
    return 0


def _base(args: argparse.Namespace) -> Base:
    from engine.finetune.weights import find_base

    return find_base(args.model, args.parts, args.work)


def _device_name(device: object) -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() and "cuda" in str(device) else str(device)


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
