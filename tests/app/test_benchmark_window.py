"""The benchmark of the window runs and says what it measured; how quick the machine is, is not tested."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_figures_are_printed_and_written(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    command = [sys.executable, "-m", "app.cli", "benchmark", "window", "--events", "500", "--starts", "1"]
    done = subprocess.run([*command, "--json", str(out)], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    assert "event to painted text, p99" in done.stdout
    figures = json.loads(out.read_text(encoding="utf-8"))
    assert len(figures["cold_start_ms"]) == 1
    assert 0 < figures["painted_p50_ms"] <= figures["painted_p99_ms"] <= figures["painted_max_ms"]
    assert figures["memory_last_mib"] > 0
