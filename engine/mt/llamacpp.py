"""The translator on llama.cpp: greedy drafts with attention rows of chosen heads, read inside the engine."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.alignatt.draft import Draft
from engine.mt.contract import Cancel, CaptureHealth, Progress, Source, TranslationError
from engine.mt.drafting import Generated, Prepared, as_draft, next_token, no_draft, prepare
from engine.mt.llama_context import LlamaContext
from engine.mt.prompt import PromptLayout, layout_of
from engine.mt.rows import stack_rows, unit_masses

logger = logging.getLogger("surtitle.mt")

BATCH_TOKENS = 512
LOCK_POLL_S = 0.02


class LlamaCppTranslator:
    """`Translator` over a GGUF file. One lock: a draft of one session waits for that of another.

    `heads`: (layer, head)s whose mean is a token's row, None for every head. `query_row`: "predicting" or "own",
    see `HeadSet`. `adapter`: a LoRA adapter in GGUF form. The fixed part of the prompt and whatever else two prompts
    share stay in the KV cache. Raises `TranslationError` for an unusable file and for heads that the model does not
    have.
    """

    supports_shared_kv = True  # rows are what every layer attended to, whoever computed its keys

    def __init__(
        self,
        path: Path,
        prompt: str,
        heads: Sequence[tuple[int, int]] | None,
        query_row: str,
        *,
        threads: int = 1,
        n_ctx: int = 1024,
        n_batch: int = BATCH_TOKENS,
        progress: Progress | None = None,
        head_set_name: str = "",
        adapter: Path | None = None,
    ) -> None:
        if query_row not in ("predicting", "own"):
            raise ValueError(f"query_row {query_row!r}")
        self._context = LlamaContext(
            path, heads, threads=threads, n_ctx=n_ctx, n_batch=n_batch, progress=progress, adapter=adapter
        )
        self._layout: PromptLayout = layout_of(prompt, self._context.chat_template)
        self._own_row = query_row == "own"
        self._lock = threading.Lock()
        self._owner: tuple[str, int] | None = None
        self._closed = False
        self.health = CaptureHealth(mode="cb_eval")
        self.head_set_name = head_set_name

    @property
    def heads(self) -> tuple[tuple[int, int], ...]:
        """The (layer, head)s that are read, in the order of `teacher_force`."""
        return self._context.heads

    @property
    def geometry(self) -> tuple[int, int]:
        """(layers, query heads of a layer) of the model."""
        return self._context.n_layer, self._context.n_head

    @property
    def architecture(self) -> str:
        """The model's architecture, as its file names it."""
        return self._context.architecture

    @property
    def layout_id(self) -> str:
        """The prompt layout, as head sets name it."""
        return self._layout.layout_id

    # ------------------------------------------------------------ the contract

    def draft(
        self, session_id: str, source: Source, prefill_ids: Sequence[int], max_new_tokens: int, cancel: Cancel
    ) -> Draft:
        """See `Translator.draft`. The draft is shorter than asked for where the context leaves no room."""
        while not self._lock.acquire(timeout=LOCK_POLL_S):
            if cancel():
                return no_draft(source, prefill_ids)
        try:
            self._check_open()
            if cancel():
                return no_draft(source, prefill_ids)
            room = self._context.n_ctx - len(prefill_ids)
            prepared = self._prepare(source, room - max_new_tokens, room - 1)
            self._owner = (session_id, prepared.fixed_tokens)
            made = self._generate(
                [*prepared.ids, *prefill_ids],
                min(max_new_tokens, room - len(prepared.ids)),
                prepared.prompt.stop,
                cancel,
            )
            units, heads = len(source.units), len(self.heads)
            return as_draft(self._context, prepared, prefill_ids, units, made, heads, self.health)
        finally:
            self._lock.release()

    def count_tokens(self, text: str) -> int:
        """See `Translator.count_tokens`."""
        with self._lock:
            self._check_open()
            return len(self._context.encode(text))

    def encode_target(self, text: str) -> list[int]:
        """See `Translator.encode_target`. Spaces around the text become what the prompt layout asks for."""
        with self._lock:
            self._check_open()
            stripped = text.strip()
            return self._context.encode(self._layout.target_lead + stripped) if stripped else []

    def close_session(self, session_id: str) -> None:
        """See `Translator.close_session`. The languages' fixed prompt stays in the cache."""
        with self._lock:
            if self._owner is not None and self._owner[0] == session_id and not self._closed:
                self._context.keep(min(self._owner[1], len(self._context.ids)))
                self._owner = None

    def close(self) -> None:
        """See `Translator.close`. Waits for a draft in progress."""
        with self._lock:
            self._closed = True
            self._context.close()

    # ------------------------------------------------------------ beyond the contract

    def warm_up(self, source_lang: str, target_lang: str) -> None:
        """Compute the fixed prompt of a language pair; test on it that every row arrives and sums to 1.

        A failed test is logged and noted in `health`; drafts then come without usable rows.
        """
        with self._lock:
            self._check_open()
            room = self._context.n_ctx
            prepared = self._prepare(Source((), source_lang, target_lang), room, room)
            # The prefix's last token may be spelt otherwise once the source follows.
            ids = prepared.ids[: max(1, prepared.fixed_tokens - 1)]
            rows = self._context.extend(ids, 1) or [None]
            row = stack_rows(rows, len(self.heads))
            passed = bool(np.isfinite(unit_masses(row, prepared.units, len(prepared.ids), 0)).all())
            self.health.self_test = "passed" if passed else "failed"
            if not passed:
                logger.error("The attention rows of %s cannot be read.", self._context.path.name)

    def pieces(self, ids: Sequence[int]) -> tuple[bytes, ...]:
        """UTF-8 bytes of each token."""
        with self._lock:
            self._check_open()
            return tuple(self._context.piece(token) for token in ids)

    def teacher_force(
        self, source: Source, target_ids: Sequence[int], query_row: str | None = None
    ) -> NDArray[np.float32]:
        """Mass of each head on each source unit while the model reads a given target: [heads, tokens, units].

        Heads as in `heads`; rows by `query_row`, or by the translator's own. NaN where no row arrived.
        Raises `TranslationError` when source and target do not fit into the context.
        """
        own = self._own_row if query_row is None else query_row == "own"
        with self._lock:
            self._check_open()
            room = self._context.n_ctx - len(target_ids)
            prepared = self._prepare(source, room, room)
            rows = self._context.extend([*prepared.ids, *target_ids], len(target_ids) + 1) or []
            chosen = rows[1:] if own else rows[:-1]
            stacked = stack_rows(chosen, len(self.heads))
            units = len(source.units)
            masses = unit_masses(stacked, prepared.units, len(prepared.ids), units)
            return masses[..., :units].astype(np.float32)

    # ------------------------------------------------------------ parts

    def _check_open(self) -> None:
        if self._closed:
            raise TranslationError("The translator has been closed; start it again.")

    def _prepare(self, source: Source, wanted: int, limit: int) -> Prepared:
        return prepare(self._layout, source, self._context.tokenise, wanted, limit)

    def _generate(self, ids: list[int], limit: int, stop: tuple[str, ...], cancel: Cancel) -> Generated:
        """Greedy tokens behind `ids`. A token's row is that of the decode before it, or of its own."""
        made, context = Generated(), self._context
        first = context.extend(ids, 0 if self._own_row else 1, cancel)
        if first is None:
            made.finish = "cancelled"
            return made
        row = None if self._own_row else first[0]
        while len(made.ids) < limit:
            token, last = next_token(context, context.best(), stop)
            if token is None:
                made.finish = "stop"
                break
            if cancel():
                made.finish = "cancelled"
                break
            made.ids.append(token)
            if self._own_row or not (last or len(made.ids) == limit):
                following = context.decode([token], 1)[0]
                made.rows.append(following if self._own_row else row)
                row = following
            else:
                made.rows.append(row)
            if last:
                made.finish = "stop"
                break
        return made
