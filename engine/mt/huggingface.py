"""The translator on transformers: greedy drafts with attention rows of chosen heads, through one of two seams."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from engine.alignatt.draft import Draft
from engine.alignatt.heads import Head
from engine.mt import hf_int8, hf_weights, qk_capture
from engine.mt.attention_spec import AttentionSpecError, describe
from engine.mt.contract import Cancel, CaptureHealth, Progress, Source, TranslationError
from engine.mt.drafting import Generated, Prepared, as_draft, next_token, no_draft, prepare
from engine.mt.hf_adapter import merge
from engine.mt.hf_cache import CachedText, SessionCaches, cache_keyword
from engine.mt.hf_tokens import HfTokens
from engine.mt.latin import latin_tokens
from engine.mt.prompt import PromptLayout, layout_of
from engine.mt.rows import stack_rows, unit_masses

logger = logging.getLogger("surtitle.mt")

SEAMS: dict[str, type[qk_capture.EagerSeam] | type[qk_capture.QkSeam]] = {
    "hf_eager": qk_capture.EagerSeam,
    "hf_qk_fast": qk_capture.QkSeam,
}
PREFILL_TOKENS = 512  # of one pass; cancellation is looked at between passes
LOCK_POLL_S = 0.02
SELF_TEST_ERROR = {"float32": 1e-4, "bfloat16": 1e-2}  # relative; a wrong scale, mask or head is off by tenths


class HuggingFaceTranslator:
    """`Translator` over a local folder of transformers, or a GGUF file (converted once into `cache`).

    `seam`: "hf_eager" or "hf_qk_fast". `heads`: (layer, head)s whose mean is a token's row, None for every head whose
    layer computes its own keys. `query_row`: "predicting" or "own", see `HeadSet`. `device`: "cpu", "cuda", "cuda:1"
    or "auto"; `dtype`: "float32", "bfloat16", or "auto". `adapter`: file and scale of a LoRA adapter, see `hf_adapter`.
    On the CPU, `quantise` "int8" quantises the weights and `output_tokens` "latin" leaves out what is not written in
    Latin script, see `hf_int8`; a GPU needs neither and ignores both. `threads` holds for the whole process; None
    leaves torch's choice. The attributes `heads` (in the order of `teacher_force`), `geometry` (layers, query heads of
    a layer) and `architecture` are as read from the model. One lock: a draft of one session waits for that of another.
    Raises `TranslationError` for an unusable model and for heads that it does not have or that share another layer's
    keys.
    """

    supports_shared_kv = False

    def __init__(
        self,
        path: Path,
        prompt: str,
        heads: Sequence[tuple[int, int]] | None,
        query_row: str,
        *,
        seam: str = "hf_qk_fast",
        cache: Path,
        dtype: str = "auto",
        device: str = "auto",
        threads: int | None = None,
        n_ctx: int = 1024,
        sessions: int = 8,
        progress: Progress | None = None,
        head_set_name: str = "",
        adapter: tuple[Path, float] | None = None,
        quantise: str = "none",
        output_tokens: str = "all",
    ) -> None:
        if query_row not in ("predicting", "own") or seam not in SEAMS:
            raise ValueError(f"query_row {query_row!r}, seam {seam!r}")
        device, dtype = hf_weights.choose(device, dtype, quantise)
        if threads is not None:
            torch.set_num_threads(threads)
        qk_capture.register()
        loaded = hf_weights.load(
            path, dtype=dtype, device=device, implementation=SEAMS[seam].implementation, cache=cache, progress=progress
        )
        if adapter is not None:
            merge(loaded.model, *adapter)
        self._name = path.name
        self._model = loaded.model
        self._cache_option = cache_keyword(loaded.model)
        self._device, self._dtype = device, dtype
        self._n_ctx = min(n_ctx, loaded.max_positions)
        self._tokens = HfTokens(loaded.tokeniser, loaded.model_type, loaded.end_ids)
        self._outputs = self._make_fast(quantise == "int8", output_tokens == "latin") if device == "cpu" else None
        self._layout: PromptLayout = layout_of(prompt, self._tokens.chat_template)
        self._own_row = query_row == "own"
        self._open_seam(seam, heads)
        self._caches = SessionCaches(sessions)
        self._lock = threading.Lock()
        self._closed = False
        self.health = CaptureHealth(mode=seam)
        self.head_set_name = head_set_name

    def _make_fast(self, int8: bool, latin: bool) -> torch.Tensor | None:
        """Shrink the model in place; the token of each output, None where output and token are one."""
        if int8:
            hf_int8.quantise_layers(self._model)
        if not (int8 or latin):
            return None
        tokens = latin_tokens(self._tokens.pieces()) if latin else None
        return hf_int8.shrink_output(self._model, tokens, int8)

    def _open_seam(self, seam: str, heads: Sequence[tuple[int, int]] | None) -> None:
        try:
            attention = describe(self._model)
            if heads is None:
                own_keys = [layer.layer for layer in attention.layers if not layer.shared_kv]
                heads = [(layer, head) for layer in own_keys for head in range(attention.query_heads)]
            if not heads:
                raise AttentionSpecError("No attention heads were chosen; a head set names at least one.")
            chosen = [Head(layer, head) for layer, head in heads]
            attention.check_heads(chosen)
        except AttentionSpecError as error:
            raise TranslationError(str(error)) from error
        self._seam: qk_capture.Seam = SEAMS[seam](attention, chosen)
        self.heads = tuple((head.layer, head.head) for head in chosen)
        self.geometry = len(attention.layers), attention.query_heads
        self.architecture = attention.architecture

    @property
    def layout_id(self) -> str:
        """The prompt layout, as head sets name it."""
        return self._layout.layout_id

    # ------------------------------------------------------------ the contract

    def draft(
        self, session_id: str, source: Source, prefill_ids: Sequence[int], max_new_tokens: int, cancel: Cancel
    ) -> Draft:
        """See `Translator.draft`. The draft is shorter than asked for where the context leaves no more room."""
        while not self._lock.acquire(timeout=LOCK_POLL_S):
            if cancel():
                return no_draft(source, prefill_ids)
        try:
            self._check_open()
            if cancel():
                return no_draft(source, prefill_ids)
            room = self._n_ctx - len(prefill_ids)
            prepared = self._prepare(source, room - max_new_tokens, room - 1)
            limit = min(max_new_tokens, room - len(prepared.ids))
            made = self._generate(session_id, [*prepared.ids, *prefill_ids], limit, prepared.prompt.stop, cancel)
            return as_draft(self._tokens, prepared, prefill_ids, len(source.units), made, len(self.heads), self.health)
        finally:
            self._lock.release()

    def count_tokens(self, text: str) -> int:
        """See `Translator.count_tokens`."""
        with self._lock:
            return len(self._tokens.encode(text))

    def encode_target(self, text: str) -> list[int]:
        """See `Translator.encode_target`. Spaces around the text are replaced by what the prompt layout asks for."""
        stripped = text.strip()
        with self._lock:
            return self._tokens.encode(self._layout.target_lead + stripped) if stripped else []

    def close_session(self, session_id: str) -> None:
        """See `Translator.close_session`."""
        with self._lock:
            self._caches.drop(session_id)

    def close(self) -> None:
        """See `Translator.close`. Waits for a draft in progress."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._caches.clear()
            del self._model, self._seam
            if self._device.startswith("cuda"):
                torch.cuda.empty_cache()

    # ------------------------------------------------------------ beyond the contract

    def warm_up(self, source_lang: str, target_lang: str) -> None:
        """Compute the fixed prompt of a language pair, and test the rows on it.

        Every head's row must arrive and sum to 1, and (hf_qk_fast) attention rebuilt from the kept queries and the
        cached keys and values must be the attention that the model computed. A failed test is logged and noted in
        `health`.
        """
        with self._lock:
            self._check_open()
            prepared = self._prepare(Source((), source_lang, target_lang), self._n_ctx, self._n_ctx)
            ids = prepared.ids[: max(1, prepared.fixed_tokens)]
            text, last = self._caches.take(_WARM_UP, ids), len(ids) - 1
            with torch.inference_mode(), self._seam.recording(last, check=True):
                self._extend(_WARM_UP, text, ids)
                rows = stack_rows(self._seam.rows(last, 1), len(self.heads))
                error = self._seam.worst_error
            masses = unit_masses(rows, prepared.units, len(prepared.ids), 0)
            passed = bool(np.isfinite(masses).all()) and error <= SELF_TEST_ERROR[self._dtype]
            self.health.self_test = "passed" if passed else "failed"
            if not passed:
                logger.error("The attention rows of %s cannot be trusted (relative error %.3g).", self._name, error)

    def teacher_force(
        self, source: Source, target_ids: Sequence[int], query_row: str | None = None
    ) -> NDArray[np.float32]:
        """Mass of each head on each source unit while the model reads a given target: [heads, tokens, units].

        Heads in the order of `heads`; rows by `query_row`, or by the translator's own. NaN where no row arrived.
        Raises `TranslationError` when source and target do not fit into the context.
        """
        own = self._own_row if query_row is None else query_row == "own"
        with self._lock:
            self._check_open()
            room = self._n_ctx - len(target_ids)
            prepared = self._prepare(source, room, room)
            ids = [*prepared.ids, *target_ids]
            first = len(prepared.ids) - 1
            text = self._caches.take(_CALIBRATION, ids, len(target_ids) + 1)
            with torch.inference_mode(), self._seam.recording(first):
                self._extend(_CALIBRATION, text, ids)
                rows = self._seam.rows(first + own, len(target_ids))
            units = len(source.units)
            masses = unit_masses(stack_rows(rows, len(self.heads)), prepared.units, len(prepared.ids), units)
            return masses[..., :units].astype(np.float32)

    def pieces(self, ids: Sequence[int]) -> tuple[bytes, ...]:
        """UTF-8 bytes of each token."""
        return tuple(self._tokens.piece(token) for token in ids)

    # ------------------------------------------------------------ parts

    def _check_open(self) -> None:
        if self._closed:
            raise TranslationError("The translator has been closed; start it again.")

    def _prepare(self, source: Source, wanted: int, limit: int) -> Prepared:
        return prepare(self._layout, source, self._tokens.tokenise, wanted, limit)

    def _generate(self, session_id: str, ids: list[int], limit: int, stop: Sequence[str], cancel: Cancel) -> Generated:
        """Greedy tokens behind `ids`. A token's row is that of the query that predicted it, or of its own."""
        made, text = Generated(), self._caches.take(session_id, ids)
        with torch.inference_mode(), self._seam.recording(len(ids) - 1):
            best = self._extend(session_id, text, ids, cancel)
            last = best is None
            while not last and len(made.ids) < limit:
                assert best is not None
                token, last = next_token(self._tokens, best, stop)
                if cancel():
                    made.finish = "cancelled"
                    break
                if token is not None:
                    made.ids.append(token)
                if last:
                    made.finish = "stop"
                if token is not None and (self._own_row or not (last or len(made.ids) == limit)):
                    best = self._extend(session_id, text, [*ids, *made.ids])
            if best is None:
                made.finish = "cancelled"
            made.rows = self._seam.rows(len(ids) - (not self._own_row), len(made.ids))
        return made

    def _extend(
        self, session_id: str, text: CachedText, ids: Sequence[int], cancel: Cancel = lambda: False
    ) -> int | None:
        """Bring a cached text to `ids`; the most probable token behind them, or None when cancelled."""
        best: int | None = None
        while len(text.ids) < len(ids):
            if cancel():
                return None
            part = list(ids[len(text.ids) : len(text.ids) + PREFILL_TOKENS])
            try:
                best = self._pass(text, part)
            except BaseException:
                self._caches.drop(session_id)  # some of its layers may be longer than others
                raise
            text.ids += part
        return best

    def _pass(self, text: CachedText, ids: list[int]) -> int:
        """One forward pass; the most probable token behind it."""
        try:
            output = self._model(
                input_ids=torch.tensor([ids], device=self._device),
                use_cache=True,
                logits_to_keep=1,
                **{self._cache_option: text.cache},
                **self._seam.options,
            )
        except (RuntimeError, MemoryError, AttentionSpecError) as error:
            reason = str(error).strip().split("\n")[0].rstrip(".")
            raise TranslationError(f"The translation model could not compute the next step: {reason}.") from error
        self._seam.observe(output)
        value, best = output.logits[0, -1].max(dim=-1)
        if torch.isnan(value):
            raise TranslationError(
                f"{self._name} computes no usable numbers in {self._dtype}; choose float32 or another model."
            )
        return int(best if self._outputs is None else self._outputs[best])


_WARM_UP, _CALIBRATION = "\0warm-up", "\0calibration"
