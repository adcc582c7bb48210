"""`surtitle sessions`: list, show and delete recorded sessions."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.errors import UserError
from app.export.txt import write
from app.export.writer import WHAT
from app.files import sessions_folder
from app.session_files import delete_session, find_session, is_running, newest, open_session, session_files, short_id
from app.session_record import NewerSessionError, SessionRecord, TranscriptError, read_session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of `surtitle sessions`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    actions.add_parser("list", help="all sessions, newest first (the default)")
    show = actions.add_parser("show", help="print a session")
    show.add_argument("session", help="beginning of its id, or last")
    show.add_argument("--what", choices=WHAT, default="both")
    delete = actions.add_parser("delete", help="delete sessions for good")
    delete.add_argument("session", nargs="+", help="beginning of an id, or last")
    delete.add_argument("--yes", action="store_true", help="do not ask")


def run(args: argparse.Namespace) -> int:
    """Carry out the action. Raises `UserError`."""
    folder = sessions_folder()

    def tell(sentence: str) -> None:
        print(sentence, file=sys.stderr)

    if args.action == "show":
        record = open_session(folder, args.session, tell)
        print(write(record, args.what), end="")
        return 0
    if args.action == "delete":
        named = [newest(folder, tell)[0] if name == "last" else find_session(folder, name) for name in args.session]
        return _delete(named, args.yes)
    return _list(folder)


def state_of(path: Path, record: SessionRecord) -> str:
    """One word on how the session stands."""
    if is_running(path):
        return "running"
    return "" if record.ended else "cut off"


def _list(folder: Path) -> int:
    files = session_files(folder)
    if not files:
        print(f"There are no sessions in {folder} yet.", file=sys.stderr)
        return 0
    table = Table(box=None, pad_edge=False)
    for title in ("id", "started", "length", "pair", "words", "title", "state"):
        table.add_column(title, no_wrap=title != "title", justify="right" if title in ("length", "words") else "left")
    for path in files:
        table.add_row(*map(Text, _row(path)))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 160
    with console.capture() as captured:
        console.print(table)
    print(captured.get(), end="")
    return 0


def _row(path: Path) -> list[str]:
    try:
        record = read_session(path)
    except TranscriptError as error:
        why = "of a newer version" if isinstance(error, NewerSessionError) else "damaged"
        return [short_id(path), path.stem, "", "", "", "", why]
    minutes, seconds = divmod(round(record.audio_s), 60)
    words = sum(len(utterance.target.split()) for utterance in record.utterances)
    return [
        short_id(path),
        _local(record.started_at) or path.stem,
        f"{minutes}:{seconds:02}",
        f"{record.source_lang}-{record.target_lang}",
        str(words),
        record.title,
        state_of(path, record),
    ]


def _local(started_at: str) -> str:
    try:
        return f"{datetime.fromisoformat(started_at).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return ""


def _delete(paths: list[Path], sure: bool) -> int:
    names = ", ".join(path.stem for path in paths)
    if not sure:
        if not sys.stdin.isatty():
            raise UserError(f"Nothing was deleted: add --yes to delete {names} for good.")
        if input(f"Delete {names} for good? [y/N] ").strip().lower() not in ("y", "yes"):
            print("Nothing was deleted.", file=sys.stderr)
            return 0
    for path in dict.fromkeys(paths):
        delete_session(path)
        print(f"Deleted {path.stem}.", file=sys.stderr)
    return 0
