"""Where `surtitle` begins. Nothing is loaded before `main` runs: Ctrl-C is a quiet end from the first moment."""

from __future__ import annotations

import sys
from collections.abc import Sequence

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (see `app.command_line`); the exit status."""
    try:
        from app.command_line import run

        return run(argv)
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
