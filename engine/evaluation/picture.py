"""`surtitle trace-plot LOG --output PNG`: where the tokens of one draft looked, with the frontier drawn in."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.alignatt.units import split_units
from engine.files import why
from engine.schemas import CaptionLine, LogError, SessionLine, Token, read_log


class PictureError(Exception):
    """A log that holds nothing to draw; the message is one sentence."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of `trace-plot`."""
    parser.add_argument("log", type=Path, help="session log of a run with --trace")
    parser.add_argument("--output", type=Path, required=True, help="the picture (png, svg, pdf)")
    parser.add_argument("--utterance", type=int, help="its id (default: the one with the longest open draft)")


def run(args: argparse.Namespace) -> int:
    """Draw one caption of the log. Status 2 and one sentence when there is nothing to draw."""
    try:
        lines = read_log(args.log)
        caption = choose(lines, args.utterance)
        languages = next((line.source_lang for line in lines if isinstance(line, SessionLine)), "en")
        draw(caption, languages, args.output)
    except (LogError, PictureError) as error:
        print(error, file=sys.stderr)
        return 2
    except ImportError:
        print("The picture needs matplotlib: pip install 'surtitle[evaluation]'.", file=sys.stderr)
        return 2
    except (OSError, ValueError) as error:
        print(f"The picture cannot be written to {args.output}: {why(error)}.", file=sys.stderr)
        return 2
    print(f"Wrote {args.output}.")
    return 0


def choose(lines: Sequence[object], utterance: int | None) -> CaptionLine:
    """The traced caption with the most tokens; an open utterance comes first, for its frontier lies inside."""
    traced = [line for line in lines if isinstance(line, CaptionLine) and _drawable(line)]
    if utterance is not None:
        traced = [caption for caption in traced if caption.utterance_id == utterance]
    if not traced:
        which = "" if utterance is None else f" of utterance {utterance}"
        raise PictureError(f"The log holds no traced caption{which}: run the session with --trace.")
    return max(traced, key=lambda caption: (not caption.final, len(caption.tokens or ())))


def _drawable(caption: CaptionLine) -> bool:
    return bool(caption.tokens) and all(token.row for token in caption.tokens or ())


def draw(caption: CaptionLine, source_lang: str, output: Path) -> None:
    """Write the picture: tokens from left to right, source units from top to bottom, mass as darkness."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    tokens: tuple[Token, ...] = caption.tokens or ()
    masses = np.array([token.row for token in tokens], float).T
    committed = split_units(caption.source_stable, source_lang)
    units = [*committed, *split_units(caption.source_tail, source_lang)][: len(masses)]
    units += [f"unit {at}" for at in range(len(units), len(masses))]
    width, height = 2.5 + 0.55 * len(tokens), 1.8 + 0.3 * len(masses)
    figure, axes = pyplot.subplots(figsize=(width, height), layout="constrained")
    image = axes.imshow(masses, cmap="Greys", vmin=0, aspect="auto")
    axes.set_yticks(range(len(units)), units)
    axes.set_xticks(range(len(tokens)), [token.text.strip() or "␣" for token in tokens], rotation=60, ha="right")
    for label, token in zip(axes.get_xticklabels(), tokens, strict=True):
        label.set_fontweight("bold" if token.released else "normal")
    frontier = len(masses) if caption.final else len(committed)
    axes.axhline(frontier - 0.5, color="tab:red", label="frontier")
    axes.set_title(f"utterance {caption.utterance_id} at {caption.emitted_s:.1f} s: {caption.reason}", fontsize=9)
    axes.set_xlabel("draft (bold: released)")
    axes.legend(loc="upper right", fontsize=8)
    figure.colorbar(image, label="attention mass", shrink=0.8)
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=130)
    pyplot.close(figure)
