"""`packaging/setup-gpu.sh` on machines by script: driver, memory, disk, plan, a broken installation, a complete one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.presets import load_preset

SCRIPT = Path(__file__).parents[2] / "packaging" / "setup-gpu.sh"
H100 = "580.65.06, 81559, 9.0, NVIDIA H100"
# Answers as pip would: a report of two files, then packages that say who they are.
PIP = """
import json, pathlib, sys, sysconfig
here = pathlib.Path(__file__).parent
(here / "asked").open("a").write(" ".join(sys.argv[1:]) + "\\n")
if "--report" in sys.argv:
    pathlib.Path(sys.argv[sys.argv.index("--report") + 1]).write_text((here / "report.json").read_text())
elif (here / "fails").exists():
    sys.exit("no network")
else:
    for name in ("torch", "vllm"):
        pathlib.Path(sysconfig.get_path("purelib"), name + ".py").write_text(
            "__version__ = '1'\\nclass cuda:\\n    init = staticmethod(lambda: None)\\n"
        )
"""


class Machine:
    """Programs that say what a machine of this kind says, and a pip that downloads nothing."""

    def __init__(self, folder: Path) -> None:
        self.env, self.bin, self.pip = folder / "gpu", folder / "bin", folder / "pip"
        self.bin.mkdir()
        (self.pip / "pip").mkdir(parents=True)
        (self.pip / "pip" / "__init__.py").touch()
        (self.pip / "pip" / "__main__.py").write_text(PIP, encoding="utf-8")
        large = folder / "torch.whl"
        with large.open("wb") as file:
            file.truncate(60_000_000)
        row = {"metadata": {"name": "torch", "version": "2.11.0"}, "download_info": {"url": large.as_uri()}}
        (self.pip / "pip" / "report.json").write_text(json.dumps({"install": [row, row]}), encoding="utf-8")
        self.says("nvidia-smi", H100)
        self.says("free", "head", "Mem: 64 1 63 0 0 63")
        self.says("df", "Avail", "900000000000")

    def says(self, program: str, *lines: str, status: int = 0) -> None:
        text = "\n".join(lines)
        path = self.bin / program
        path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {status}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        options = ["--env", str(self.env), "--python", sys.executable, "--pip", str(self.pip)]
        env = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.env.parent), "LANG": "C.UTF-8"}
        return subprocess.run(
            [SCRIPT, *options, *words], env=env, capture_output=True, text=True, timeout=60, check=False
        )

    @property
    def asked(self) -> list[str]:
        path = self.pip / "pip" / "asked"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_dry_run_prints_the_plan_and_changes_nothing(machine: Machine) -> None:
    done = machine.run("--dry-run")
    assert done.returncode == 0, done.stderr
    for expected in ("NVIDIA H100", "CUDA 13", "2 packages, 120 MB", "60 MB  torch 2.11.0", "gemma_low_latency"):
        assert expected in done.stdout
    assert done.stdout.splitlines()[-1] == "This was the plan; nothing was changed."
    assert not machine.env.exists()


def test_an_older_driver_gets_the_older_cuda(machine: Machine) -> None:
    machine.says("nvidia-smi", "550.54.15, 24576, 8.9, NVIDIA L4")
    done = machine.run("--dry-run")
    assert "CUDA 12.9" in done.stdout
    assert "presets qwen_low_latency\n" in done.stdout
    assert re.search(r"--extra-index-url https://wheels\.vllm\.ai/\d+\.\d+\.\d+/cu129 ", machine.asked[0])


def test_of_several_cards_the_largest_counts(machine: Machine) -> None:
    machine.says("nvidia-smi", "580.1, 8192, 8.6, Small", "580.1, 40960, 9.0, Large")
    assert "Large, 40 GiB" in machine.run("--dry-run").stdout


@pytest.mark.parametrize(
    ("program", "lines", "status", "expected"),
    [
        ("nvidia-smi", ["470.1, 81559, 8.0, NVIDIA A100"], 0, "driver 470.1 is too old"),
        ("nvidia-smi", ["580.1, 8192, 8.6, NVIDIA RTX 3070"], 0, "has 8 GiB of memory"),
        ("nvidia-smi", ["580.1, 32768, 7.0, NVIDIA V100"], 0, "compute capability 7.0"),
        ("nvidia-smi", ["580.1, [N/A], 9.0, NVIDIA H100 MIG"], 0, "slice of a card"),
        ("nvidia-smi", ["failed"], 9, "does not answer"),
        ("uname", ["Darwin"], 0, "are for Linux on x86_64"),
        ("free", ["head", "Mem: 8 1 4 0 0 4"], 0, "4 GiB of memory are free"),
        ("df", ["Avail", "1000000000"], 0, "not enough room"),
    ],
)
def test_what_is_missing_is_one_sentence(
    machine: Machine, program: str, lines: list[str], status: int, expected: str
) -> None:
    machine.says(program, *lines, status=status)
    done = machine.run()
    assert done.returncode == 2
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    assert not machine.env.exists()


@pytest.mark.skipif(shutil.which("nvidia-smi", path="/usr/bin:/bin") is not None, reason="there is a driver")
def test_no_driver_and_bad_options(machine: Machine) -> None:
    (machine.bin / "nvidia-smi").unlink()
    assert "There is no NVIDIA driver" in machine.run().stderr
    assert machine.run("--fast").stderr.startswith("usage: ")
    assert machine.run("--env").stderr.startswith("--env needs a value")


def test_it_goes_on_where_it_was_and_is_then_complete(machine: Machine) -> None:
    fails = machine.pip / "pip" / "fails"
    fails.touch()
    done = machine.run()
    assert done.returncode == 2
    assert "start again to go on" in done.stderr
    assert (machine.env / ".cache").is_dir()
    assert not (machine.env / ".surtitle-ready").exists()
    fails.unlink()
    done = machine.run()
    assert done.returncode == 0, done.stderr
    assert "torch 1 vLLM 1" in done.stdout
    assert (machine.env / ".surtitle-ready").is_file()
    assert not (machine.env / ".cache").exists()
    assert "complete already" in machine.run().stdout


@pytest.mark.parametrize("card_mib", [14_999, 15_000, 38_999, 39_000, 81_559])
def test_the_presets_that_it_names_fit_the_card(machine: Machine, card_mib: int) -> None:
    machine.says("nvidia-smi", f"580.65.06, {card_mib}, 8.0, NVIDIA A100")
    done = machine.run("--dry-run")
    named = re.search(r": presets (.*)", done.stdout)
    offered = named[1].split(", ") if named else []
    assert offered == [
        name for name in ("qwen_low_latency", "gemma_low_latency", "gemma_high_latency") if name in offered
    ]
    assert all(load_preset(name).gpu_gib * 1024 <= card_mib for name in offered)
    assert ("gemma_low_latency" in offered) == (card_mib >= 39_000)
    assert bool(offered) == (card_mib >= 15_000)
