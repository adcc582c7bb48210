"""Figures of the MT benchmark over its seams: medians, ratios, what capture costs, the memory floor."""

from __future__ import annotations

import statistics
from typing import Any

from engine.benchmarks.mt_subject import Subject
from engine.capture.settings import NO_QUANTIZATION


def add_figures(report: dict[str, Any], chosen: Subject) -> None:
    """Medians, ratios and the memory floor over all seams so far."""
    medians: dict[str, float] = {}
    for seam, found in report["seams"].items():
        parts = {seam: found} if "rows" in found else {
            seam: found.get("captured", {}), f"{seam}_without_capture": found.get("plain", {})
        }  # fmt: skip
        for name, part in parts.items():
            if "rows" in part:
                medians[name] = round(statistics.median(row["ms_per_token"] for row in part["rows"]), 3)
    report["median_ms_per_token"] = medians
    if (ours := medians.get("vllm_graphs")) is not None:
        hf = {name: value for name, value in medians.items() if name.startswith("hf")}
        report["vllm_graphs_against"] = {
            name: round(value / ours, 2) for name, value in medians.items() if name != "vllm_graphs"
        }
        if hf:
            report["fastest_hf_seam"] = min(hf, key=lambda name: hf[name])
        _add_costs(report, chosen)


def _add_costs(report: dict[str, Any], chosen: Subject) -> None:
    graphs = report["seams"]["vllm_graphs"]
    plain, captured = graphs.get("plain", {}), graphs["captured"]
    if "without_rows_ms" in plain and "with_rows_ms" in captured:
        report["capture_cost_percent"] = {
            "tap_alone": round(100 * (captured["without_rows_ms"] / plain["without_rows_ms"] - 1), 2),
            "tap_and_rows": round(100 * (captured["with_rows_ms"] / plain["without_rows_ms"] - 1), 2),
        }
    if "draft_ms" in captured:  # a first word is released at the end of its draft; the decision takes microseconds
        report["first_released_word_ms"] = round(captured["draft_ms"], 2)
    if graphs.get("bandwidth") and "decode_step_ms" in captured:
        from engine.benchmarks.random_weights import decode_bytes

        size = decode_bytes(chosen.config(), quantised=chosen.quantization != NO_QUANTIZATION)
        floor_ms = 1000 * size / graphs["bandwidth"]
        report["memory_floor"] = {
            "bytes_per_step": size, "bytes_per_s": graphs["bandwidth"], "floor_ms": round(floor_ms, 3),
            "decode_step_ms": round(captured["decode_step_ms"], 3),
            "ratio": round(captured["decode_step_ms"] / floor_ms, 2),
        }  # fmt: skip


def show(seam: str, found: dict[str, Any]) -> None:
    """One line for a seam, two for one with and without capture."""
    if "error" in found:
        print(f"{seam:12} {found['error']}")
    elif "rows" in found:
        print(f"{seam:12} {statistics.median(row['ms_per_token'] for row in found['rows']):8.2f} ms per token")
    else:
        for name in ("plain", "captured"):
            rows = found.get(name, {}).get("rows", [])
            figure = f"{statistics.median(row['ms_per_token'] for row in rows):8.2f} ms per token" if rows else "failed"
            print(f"{seam:12} {figure} ({name}, {found.get(name, {}).get('capture_mode', '')})")
