"""A scripted server in a process of its own, to be killed: `python -m tests.engine.server.scripted_server PORT`."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence

from engine.alignatt.draft import Draft
from engine.alignatt.policy import Policy
from engine.mt.contract import Cancel, Source
from engine.server.command import serve_until_signal
from engine.server.server import ServerConfig, Service
from engine.server.translation import Terms
from tests.engine.mt.scripted import ScriptedTranslator

DRAFT_S = 0.02


class Slow(ScriptedTranslator):
    """Drafts take their time, so that there is always one in progress."""

    def draft(
        self, session_id: str, source: Source, prefill_ids: Sequence[int], max_new_tokens: int, cancel: Cancel
    ) -> Draft:
        time.sleep(DRAFT_S)
        return super().draft(session_id, source, prefill_ids, max_new_tokens, cancel)


if __name__ == "__main__":
    service = Service(Slow(), "test", "scripted", (("en", "de"),), Terms(Policy()))
    sys.exit(asyncio.run(serve_until_signal(service, ServerConfig(port=int(sys.argv[1])))))
