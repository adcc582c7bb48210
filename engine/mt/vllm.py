"""The translator on vLLM: greedy drafts of several sessions at once, with attention rows of chosen heads.

Sessions need no caches of their own here: prompts that begin alike share blocks through vLLM's prefix cache.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.alignatt.draft import Draft
from engine.capture.guard import CaptureError, MemoryShort
from engine.capture.host import CaptureEngine, Generation
from engine.capture.modes import DEFAULT_CUDAGRAPH_MODE, DEFAULT_ENFORCE_EAGER
from engine.capture.request import RowRequest
from engine.capture.settings import NO_QUANTIZATION, EngineSettings
from engine.capture.start import start
from engine.fitting import advice
from engine.mt.contract import Cancel, CaptureHealth, Progress, Source, TranslationError
from engine.mt.drafting import Generated, Prepared, as_draft, next_token, no_draft, prepare
from engine.mt.hf_tokens import HfTokens
from engine.mt.prompt import PromptLayout, layout_of
from engine.mt.rows import stack_rows, unit_masses


class VllmTranslator:
    """`Translator` over a local folder of transformers, or a GGUF file (converted once into `cache`).

    `heads`: (layer, head)s whose mean is a token's row, None for every head. `query_row`: "predicting" or "own", see
    `HeadSet`. `memory_gib`, `kv_cache_gib`, `own_process` and the quantization: see `EngineSettings`; `vllm`: further
    arguments of vLLM. Sessions run side by side, up to `sessions` in one batch. Raises `TranslationError`.
    """

    supports_shared_kv = True  # keys are read where the engine's own attention reads them

    def __init__(
        self,
        path: Path,
        prompt: str,
        heads: Sequence[tuple[int, int]] | None,
        query_row: str,
        *,
        cache: Path,
        n_ctx: int = 4096,
        sessions: int = 8,
        dtype: str = "auto",
        mt_vllm_enforce_eager: bool = DEFAULT_ENFORCE_EAGER,
        mt_vllm_cudagraph_mode: str = DEFAULT_CUDAGRAPH_MODE,
        mt_vllm_quantization: str = NO_QUANTIZATION,
        memory_gib: float = 0.0,
        kv_cache_gib: float = 0.0,
        own_process: bool = False,
        allow_unvalidated_vllm: bool = False,
        vllm: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
        head_set_name: str = "",
    ) -> None:
        if query_row not in ("predicting", "own"):
            raise ValueError(f"query_row {query_row!r}")
        folder = _folder(path, cache, progress)
        self._tokens, self._stop_ids, text_config = _vocabulary(folder)
        self._layout: PromptLayout = layout_of(prompt, self._tokens.chat_template)
        self._own_row = query_row == "own"
        self.head_set_name = head_set_name
        self.architecture = str((text_config.architectures or [type(text_config).__name__])[0])
        self.geometry = int(text_config.num_hidden_layers), int(text_config.num_attention_heads)
        self.heads = tuple(heads) if heads is not None else tuple(np.ndindex(*self.geometry))
        self._n_ctx = min(n_ctx, int(text_config.max_position_embeddings))
        settings = EngineSettings(
            model=str(folder),
            heads=self.heads,
            max_model_len=self._n_ctx,
            max_num_seqs=sessions,
            dtype=dtype,
            enforce_eager=mt_vllm_enforce_eager,
            cudagraph_mode=mt_vllm_cudagraph_mode,
            quantization=mt_vllm_quantization,
            memory_gib=memory_gib,
            kv_cache_gib=kv_cache_gib,
            own_process=own_process,
            allow_unvalidated_vllm=allow_unvalidated_vllm,
            vllm=vllm or {},
        )
        self._engine = _start(settings, progress)
        mode = self._engine.mode
        self.health = CaptureHealth(mode.mode, mode.self_test, reason=mode.reason)
        self._engine.on_failure = self._failed
        self.health.failure = self._engine.failure
        self._health_lock = threading.Lock()
        self._text_lock = threading.Lock()  # transformers' fast tokenisers are not safe to share between threads

    @property
    def layout_id(self) -> str:
        """The prompt layout, as head sets name it."""
        return self._layout.layout_id

    # ------------------------------------------------------------ the contract

    def draft(
        self, session_id: str, source: Source, prefill_ids: Sequence[int], max_new_tokens: int, cancel: Cancel
    ) -> Draft:
        """See `Translator.draft`. The draft is shorter than asked for where the context leaves no room."""
        if cancel():
            return no_draft(source, prefill_ids)
        room = self._n_ctx - len(prefill_ids) - self._own_row
        prepared = self._prepare(source, room - max_new_tokens, room - 1)
        limit = min(max_new_tokens, room - len(prepared.ids))
        columns, request = _columns(prepared, len(prepared.ids) + len(prefill_ids) - (not self._own_row))
        ids = [*prepared.ids, *prefill_ids]
        # The row of a token's own position exists once the token has been fed back: one more is drafted and dropped.
        result = self._generate(ids, limit + self._own_row, request, cancel)
        if result.finish == "cancelled":
            return no_draft(source, prefill_ids)
        made = self._made(ids, result, limit, prepared.prompt.stop, request)
        with self._health_lock:
            mode = self._engine.mode
            self.health.mode, self.health.self_test, self.health.reason = mode.mode, mode.self_test, mode.reason
            return as_draft(self._tokens, columns, prefill_ids, len(source.units), made, len(self.heads), self.health)

    def count_tokens(self, text: str) -> int:
        """See `Translator.count_tokens`."""
        with self._text_lock:
            return len(self._tokens.encode(text))

    def encode_target(self, text: str) -> list[int]:
        """See `Translator.encode_target`. Spaces around the text are replaced by what the prompt layout asks for."""
        stripped = text.strip()
        with self._text_lock:
            return self._tokens.encode(self._layout.target_lead + stripped) if stripped else []

    def close_session(self, session_id: str) -> None:
        """See `Translator.close_session`. Blocks that no request uses any more are re-used by others in time."""

    def close(self) -> None:
        """See `Translator.close`. Drafts in progress end with an error."""
        self._engine.close()

    # ------------------------------------------------------------ beyond the contract

    def warm_up(self, source_lang: str, target_lang: str) -> None:
        """Put the fixed prompt of a language pair into the prefix cache."""
        prepared = self._prepare(Source((), source_lang, target_lang), self._n_ctx - 1, self._n_ctx - 1)
        self._generate(prepared.ids, 1, None, lambda: False)

    def teacher_force(
        self, source: Source, target_ids: Sequence[int], query_row: str | None = None
    ) -> NDArray[np.float32]:
        """Mass of each head on each source unit while the model reads a given target: [heads, tokens, units].

        Heads in the order of `heads`; rows by `query_row`, or by the translator's own. NaN where no row arrived.
        Raises `TranslationError` when source and target do not fit into the context.
        """
        own = self._own_row if query_row is None else query_row == "own"
        room = self._n_ctx - len(target_ids) - 1
        prepared = self._prepare(source, room, room)
        columns, request = _columns(prepared, len(prepared.ids) - (not own))
        result = self._generate([*prepared.ids, *target_ids], 1, request, lambda: False)
        rows = _rows_of(result, len(target_ids))
        units = len(source.units)
        masses = unit_masses(stack_rows(rows, len(self.heads)), columns.units, len(columns.ids), units)
        return masses[..., :units].astype(np.float32)

    # ------------------------------------------------------------ parts

    def _prepare(self, source: Source, wanted: int, limit: int) -> Prepared:
        with self._text_lock:
            return prepare(self._layout, source, self._tokens.tokenise, wanted, limit)

    def _generate(self, ids: list[int], limit: int, request: RowRequest | None, cancel: Cancel) -> Generation:
        try:
            return self._engine.generate(ids, limit, self._stop_ids, request, cancel)
        except CaptureError as error:
            raise TranslationError(str(error)) from error

    def _failed(self, sentence: str) -> None:
        self.health.failure = sentence

    def _made(
        self, ids: list[int], result: Generation, limit: int, stop: Sequence[str], request: RowRequest
    ) -> Generated:
        """The tokens up to the end of the answer, each with its row."""
        made, rows = Generated(finish="length"), _rows_of(result, len(result.token_ids))
        if result.finish == "stop" and len(result.token_ids) <= limit:
            made.finish = "stop"
        for best, row in zip(result.token_ids[:limit], rows, strict=False):
            with self._text_lock:
                token, last = next_token(self._tokens, best, stop)
            if token is not None:
                if token != best and self._own_row:
                    row = self._own_row_of([*ids, *made.ids, token], request)
                made.ids.append(token)
                made.rows.append(row)
            if last:
                made.finish = "stop"
                break
        return made

    def _own_row_of(self, ids: list[int], request: RowRequest) -> NDArray[np.float32] | None:
        """The row of the last of `ids` at its own position, for a token that the model itself did not draft.

        One step, not to be cancelled: a row that nobody waited for would count as one that was lost.
        """
        result = self._generate(ids, 1, replace(request, first_query=len(ids) - 1), lambda: False)
        return _rows_of(result, 1)[0]


def _start(settings: EngineSettings, progress: Progress | None) -> CaptureEngine:
    try:
        return start(settings, progress)
    except MemoryShort as error:
        raise TranslationError(f"{str(error).rstrip('.')}: {advice(error.free_gib)}.") from error
    except CaptureError as error:
        raise TranslationError(str(error)) from error


def _folder(path: Path, cache: Path, progress: Progress | None) -> Path:
    """The folder of transformers that vLLM loads."""
    if path.suffix.lower() == ".gguf":
        from engine.mt import hf_weights

        return hf_weights.convert(path, cache, progress or (lambda fraction, text: None))
    if not (path / "config.json").is_file():
        raise TranslationError(f"{path} holds no model: there is no config.json in it and it is no GGUF file.")
    return path


def _vocabulary(folder: Path) -> tuple[HfTokens, tuple[int, ...], Any]:
    """The tokeniser, the tokens at which vLLM itself ends a draft, and the text model's configuration.

    Ends are the model's own end marks, and tokens that begin with a line break (no answer has more than one line).
    """
    try:
        from transformers import AutoConfig, AutoTokenizer, GenerationConfig
    except ImportError as error:
        raise TranslationError("vLLM is not installed: install surtitle[gpu] on Linux with an NVIDIA GPU.") from error
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        tokeniser = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise TranslationError(f"The model {folder} cannot be loaded: {reason}.") from error
    text, ends = config.get_text_config(), set[int]()
    given: list[Any] = [text.eos_token_id]
    if (folder / "generation_config.json").is_file():
        given.append(GenerationConfig.from_pretrained(folder).eos_token_id)
    for ids in given:
        ends |= set(ids if isinstance(ids, list | tuple) else [ids]) - {None}
    tokens = HfTokens(tokeniser, str(text.model_type), sorted(ends))
    ends |= {token for token in tokeniser.all_special_ids if tokens.ends_text(token)}
    breaks = {token for token in tokeniser.get_vocab().values() if tokens.piece(token).startswith(b"\n")}
    return tokens, tuple(sorted(ends | breaks)), text


def _columns(prepared: Prepared, first_query: int) -> tuple[Prepared, RowRequest]:
    """What is asked of the engine, and the prompt as its rows show it: source positions, then one for all the rest."""
    positions = np.flatnonzero(prepared.units >= 0)
    start, end = (int(positions[0]), int(positions[-1]) + 1) if len(positions) else (0, 0)
    shown = replace(
        prepared, ids=[*prepared.ids[start:end], 0], units=np.append(prepared.units[start:end], np.int32(-1))
    )
    return shown, RowRequest(start, end - start, len(prepared.ids), first_query)


def _rows_of(result: Generation, count: int) -> list[NDArray[np.float32] | None]:
    """The first `count` rows, each [heads, source positions + 2]; None where none was delivered."""
    have = 0 if result.rows is None else len(result.rows.values)
    return [result.rows.values[i] if result.rows is not None and i < have else None for i in range(count)]
