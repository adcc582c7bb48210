"""`surtitle export`: write a recorded session to files, also one that was cut off or still runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from app.export.writer import SUFFIXES, WHAT, ExportError, check_path, export
from app.files import sessions_folder
from app.session_files import open_session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of `surtitle export`."""
    parser.add_argument("session", help="beginning of the session's id, or last")
    parser.add_argument(
        "path", nargs="+", type=Path, help=f"file to write; its suffix is the format: {' '.join(SUFFIXES)}"
    )
    parser.add_argument("--what", choices=WHAT, default="target", help="text to write (default: target)")


def run(args: argparse.Namespace) -> int:
    """Write every file that can be written. Raises `UserError`."""
    for path in args.path:
        check_path(path)
    record = open_session(sessions_folder(), args.session, lambda sentence: print(sentence, file=sys.stderr))
    status = 0
    if record.damaged_lines:
        print(f"{record.damaged_lines} damaged line(s) of the session were left out.", file=sys.stderr)
    for path in args.path:
        try:
            print(export(record, path, args.what).sentence, file=sys.stderr)
        except ExportError as error:
            print(error, file=sys.stderr)
            status = 2
    return status
