"""`surtitle` with the fake engine in place of the real one: `python -m tests.app.fake_cli run …`.

`--context` tells the fake engine what to do.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    import app.commands.run as run
    from app import cli
    from app.headless import run_headless
    from tests.app.helpers import client

    run.run_headless = lambda options: run_headless(options, client())
    sys.exit(cli.main())
