"""`surtitle benchmark hf-seams`: what rows cost in the Hugging Face translator, against the same model without any.

One process, one model; for each of the 16 prompts of the MT benchmark plain greedy decoding (sdpa) and the seams take
turns, so that whatever else the machine does falls on all of them. Wall time says what a viewer waits, CPU time what
the work costs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from engine.alignatt.heads import HeadSetError, load_head_set
from engine.files import write_atomically
from engine.models import ModelError, cache_folder, resolve
from engine.mt.contract import TranslationError
from engine.presets import resources

PLAIN = "plain"
SEAMS = (PLAIN, "hf_qk_fast", "hf_eager")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of the benchmark."""
    parser.add_argument("model", nargs="?", default="gemma-3-270m", help="packaged name, GGUF file or folder")
    parser.add_argument("--heads", default="gemma-3-270m", help="folder of head sets under resources/heads")
    parser.add_argument("--direction", default="en-de")
    parser.add_argument("--top-k", type=int, default=4, help="number of heads")
    parser.add_argument("--seams", default=f"{PLAIN},hf_qk_fast", help=f"of {', '.join(SEAMS)}")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="auto", choices=("auto", "float32", "bfloat16"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3, help="hot passes over the prompts, after one to warm up")
    parser.add_argument("--json", type=Path, help="also write the figures here")


def run(args: argparse.Namespace) -> int:
    """Run it. Status 2 for bad input."""
    seams = args.seams.split(",")
    try:
        if PLAIN not in seams or not set(seams) <= set(SEAMS):
            raise TranslationError(f"--seams takes {PLAIN} and others of {', '.join(SEAMS)}.")
        times, about = _measure(args, seams)
    except (TranslationError, ModelError, HeadSetError) as error:
        print(error, file=sys.stderr)
        return 2
    figures = {seam: _figures(times[seam], times[PLAIN]) for seam in seams}
    for seam, found in figures.items():
        print(f"{seam:12}", "  ".join(f"{name} {value:8.2f}" for name, value in found.items()))
    if args.json:
        command = "python -m engine benchmark hf-seams " + " ".join(sys.argv[3:])
        report = {"command": command, "method": " ".join((__doc__ or "").split()), **about, "figures": figures}
        write_atomically(args.json, json.dumps(report, indent=1) + "\n")
    return 0


def _measure(args: argparse.Namespace, seams: list[str]) -> tuple[dict[str, list[tuple[float, float]]], dict[str, Any]]:
    """(wall, CPU) milliseconds per token of every request, in the same order for every seam."""
    import torch

    from engine.benchmarks.mt_cases import NEW_TOKENS, model_cases
    from engine.benchmarks.mt_hf import _NoRows, generate
    from engine.benchmarks.mt_subject import environment
    from engine.mt import hf_weights, qk_capture
    from engine.mt.attention_spec import describe
    from engine.mt.hf_cache import cache_keyword
    from engine.mt.hf_tokens import HfTokens
    from engine.mt.prompt import ChatLayout, FewShotLayout

    torch.set_num_threads(args.threads)
    device, dtype = hf_weights.choose(args.device, args.dtype)
    heads = list(load_head_set(resources() / "heads" / args.heads, args.direction)[0].top(args.top_k))
    loaded = hf_weights.load(
        resolve(args.model), dtype=dtype, device=device, implementation="sdpa", cache=cache_folder()
    )
    attention = describe(loaded.model)
    attention.check_heads(heads)
    qk_capture.register()
    known: dict[str, tuple[str, Any]] = {
        PLAIN: ("sdpa", _NoRows()),
        "hf_qk_fast": (qk_capture.QK_IMPLEMENTATION, qk_capture.QkSeam(attention, heads)),
        "hf_eager": ("eager", qk_capture.EagerSeam(attention, heads)),
    }
    cache_option = cache_keyword(loaded.model)
    tokens = HfTokens(loaded.tokeniser, loaded.model_type, loaded.end_ids)
    cases = model_cases(tokens, ChatLayout(tokens.chat_template) if tokens.has_chat_template else FewShotLayout())
    times: dict[str, list[tuple[float, float]]] = {seam: [] for seam in seams}
    for turn in range(args.repeats + 1):
        for at, case in enumerate(cases):
            for seam in seams if (turn + at) % 2 else seams[::-1]:
                implementation, watcher = known[seam]
                loaded.model.set_attn_implementation(implementation)
                wall, cpu = time.perf_counter(), time.process_time()
                generate(loaded.model, watcher, case, device, cache_option)
                spent = (time.perf_counter() - wall, time.process_time() - cpu)
                if turn:
                    times[seam].append((1000 * spent[0] / NEW_TOKENS, 1000 * spent[1] / NEW_TOKENS))
    about = {"model": args.model, "dtype": dtype, "heads": len(heads), "threads": args.threads}
    return times, {**about, "environment": environment(device)}


def _figures(times: list[tuple[float, float]], plain: list[tuple[float, float]]) -> dict[str, float]:
    """Medians, and the median over requests of what each costs against its plain twin."""
    wall, cpu = ([row[i] for row in times] for i in (0, 1))
    against = [
        statistics.median(100 * (one[i] / other[i] - 1) for one, other in zip(times, plain, strict=True))
        for i in (0, 1)
    ]
    return {
        "wall_ms_per_token": round(statistics.median(wall), 2),
        "cpu_ms_per_token": round(statistics.median(cpu), 2),
        "wall_cost_percent": round(against[0], 2),
        "cpu_cost_percent": round(against[1], 2),
    }
