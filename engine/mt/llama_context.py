"""One GGUF model in one context of llama.cpp: tokens in, logits and attention rows out, over a cache of known ids.

A cell of the KV cache is a position: one sequence, one batch at a time, sliding-window layers kept whole
(`swa_full`), only tails removed. Not thread-safe.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import os
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from llama_cpp import llama_cpp as api
from numpy.typing import NDArray

from engine.mt.contract import Cancel, Progress, TranslationError
from engine.mt.ggml import LayoutError, RowCapture
from engine.mt.llama_threads import ThreadChoice
from engine.mt.prompt import Message, Prompt, Span, Tokens

logger = logging.getLogger("surtitle.mt")

Row = NDArray[np.float32] | None  # [heads, positions], or None when it was not delivered

_MAGIC = b"GGUF"
_PIECE_BYTES = 256
_LOG_ERROR = 4
_complaints: deque[str] = deque(maxlen=4)


@api.llama_log_callback
def _on_log(level: int, text: bytes, _user_data: object) -> None:
    if level == _LOG_ERROR:
        line = text.decode(errors="replace").strip()
        _complaints.append(line)
        logger.warning("llama.cpp: %s", line)


@functools.cache
def _start_backend() -> None:
    api.llama_log_set(_on_log, None)
    api.llama_backend_init()


class LlamaContext:
    """See the module. `heads`: (layer, head)s whose rows `decode` reads; None for all of the model.

    `threads`: the most that a decode may use, see `ThreadChoice`. `adapter`: a LoRA adapter in GGUF form, applied at
    its own scale. Raises `TranslationError` when a file is no
    usable model or adapter, memory is short, or the model lacks a head.
    """

    def __init__(
        self,
        path: Path,
        heads: Sequence[tuple[int, int]] | None,
        *,
        threads: int,
        n_ctx: int,
        n_batch: int,
        progress: Progress | None = None,
        adapter: Path | None = None,
    ) -> None:
        self.path = path
        self._context: int | None = None
        check_file(path)
        _start_backend()
        self._model = _load_model(path, progress)
        try:
            self.n_layer = int(api.llama_model_n_layer(self._model))
            self.n_head = int(api.llama_model_n_head(self._model))
            self.architecture = _metadata(self._model, "general.architecture")
            self.heads = _checked_heads(heads, self.n_layer, self.n_head, path)
            self._capture = _make_capture(self.heads)
            self.n_ctx, self.n_batch = n_ctx, min(n_batch, n_ctx)
            lora = None if adapter is None else _load_adapter(self._model, adapter)
            self._open_context(threads, lora)
        except BaseException:
            api.llama_model_free(self._model)
            raise
        self._vocab = api.llama_model_get_vocab(self._model)
        self._n_vocab = int(api.llama_vocab_n_tokens(self._vocab))
        begins = api.llama_vocab_get_add_bos(self._vocab)
        self._begin = int(api.llama_vocab_bos(self._vocab)) if begins else None
        self._pads_space = self.piece(self._tokenise("a", False)[0]).startswith(b" ")
        self.ids: list[int] = []
        self._row_error_logged = False

    def _open_context(self, threads: int, lora: Any) -> None:
        params = api.llama_context_default_params()
        params.n_ctx, params.n_seq_max = self.n_ctx, 1
        # One micro-batch a decode: each soft-max node then holds the rows of all its tokens.
        params.n_batch = params.n_ubatch = self.n_batch
        params.n_threads = params.n_threads_batch = threads
        self._threads, self._threads_set = ThreadChoice(threads), threads
        params.swa_full = True
        params.flash_attn_type = api.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.cb_eval = self._capture.callback
        self._context = api.llama_init_from_model(self._model, params)
        if not self._context:
            raise TranslationError(
                f"There is not enough memory for {self.path.name} with a context of {self.n_ctx} tokens; "
                "close other programs or choose a smaller context."
            )
        if lora is not None:
            one = (ctypes.c_float * 1)(1.0)  # times alpha / rank, which the file says
            if api.llama_set_adapters_lora(self._context, (type(lora) * 1)(lora), 1, one):
                api.llama_free(self._context)
                raise TranslationError(f"llama.cpp does not apply an adapter to {self.path.name}.")
        self._memory = api.llama_get_memory(self._context)
        self._batch = api.llama_batch_init(self.n_batch, 0, 1)

    def close(self) -> None:
        """Free the model; the object is of no use afterwards."""
        if self._context is None:
            return
        api.llama_batch_free(self._batch)
        api.llama_free(self._context)
        api.llama_model_free(self._model)
        self._context = None

    # ------------------------------------------------------------ text and tokens

    def _tokenise(self, text: str, control: bool) -> list[int]:
        raw = text.encode()
        ids = (api.llama_token * (len(raw) + 2))()
        count = api.llama_tokenize(self._vocab, raw, len(raw), ids, len(ids), False, control)
        return [int(token) for token in ids[: max(count, 0)]]

    def encode(self, text: str) -> list[int]:
        """Tokens of plain text that continues another: no begin mark, control tokens in it are mere letters."""
        if self._pads_space and text.startswith(" "):
            text = text[1:]
        return self._tokenise(text, False) if text else []

    def tokenise(self, prompt: Prompt) -> Tokens:
        """Tokens of a prompt with their places. Raises `TranslationError` if they spell another text."""
        ids: list[int] = []
        spans: list[Span] = []
        at = 0
        for segment in prompt.segments:
            part = self._tokenise(segment.text, segment.control)
            lengths = [len(self.piece(token, control=segment.control)) for token in part]
            size = len(segment.text.encode())
            start = at - (sum(lengths) - size)  # some tokenisers put a space before a text
            if start not in (at, at - 1) or (start < at and not self._pads_space):
                raise TranslationError(f"The tokeniser of {self.path.name} changes its text; choose another model.")
            for length in lengths:
                spans.append((max(start, at), start + length))
                start += length
            ids += part
            at += size
        if self._begin is not None and ids[:1] != [self._begin]:
            ids.insert(0, self._begin)
            spans.insert(0, (0, 0))
        return Tokens(ids, spans)

    def piece(self, token: int, control: bool = False) -> bytes:
        """UTF-8 bytes of a token (maybe a part of a character); control tokens are empty unless `control`."""
        buffer = ctypes.create_string_buffer(_PIECE_BYTES)
        size = api.llama_token_to_piece(self._vocab, token, buffer, _PIECE_BYTES, 0, control)
        return buffer.raw[: max(size, 0)]

    def ends_text(self, token: int) -> bool:
        """Whether the token ends the answer: an end mark, or any control token (none is a translation)."""
        is_end, is_control = api.llama_vocab_is_eog, api.llama_vocab_is_control
        return bool(is_end(self._vocab, token) or is_control(self._vocab, token))

    def chat_template(self, messages: Sequence[Message]) -> str:
        """Messages in the model's own format, up to where the answer begins. Raises `TranslationError`."""
        template = api.llama_model_chat_template(self._model, None)
        if template is None:
            raise TranslationError(f"{self.path.name} has no chat template; use the few_shot prompt with it.")
        chat = (api.llama_chat_message * len(messages))()
        for slot, (role, content) in zip(chat, messages, strict=True):
            slot.role, slot.content = role.encode(), content.encode()
        size = 1024 + 2 * sum(len(content.encode()) for _, content in messages)
        buffer = ctypes.create_string_buffer(size)
        written = api.llama_chat_apply_template(template, chat, len(chat), True, buffer, size)
        if not 0 < written <= size:
            raise TranslationError(f"The chat template of {self.path.name} is unknown; choose another model.")
        text = buffer.raw[:written].decode()
        # Models that think aloud by default answer at once behind an empty thought.
        return f"{text}<think>\n\n</think>\n\n" if b"enable_thinking" in template else text

    # ------------------------------------------------------------ cache and decoding

    def keep(self, n: int) -> None:
        """Drop everything from position `n` on."""
        if n < len(self.ids) or n == 0:
            if not api.llama_memory_seq_rm(self._memory, 0, n, -1):
                raise TranslationError(f"{self.path.name} cannot go back in its text; choose another model.")
            del self.ids[n:]

    def extend(self, ids: Sequence[int], rows: int, cancel: Cancel | None = None) -> list[Row] | None:
        """Bring the cache to exactly `ids` and return attention rows of the last `rows` tokens, oldest first.

        What the cache shares with `ids` is used again, but the tokens asked for and the last one are always
        decoded. Returns None when cancelled.
        """
        reusable = len(ids) - max(rows, 1)
        shared = 0
        while shared < min(reusable, len(self.ids)) and ids[shared] == self.ids[shared]:
            shared += 1
        self.keep(shared)
        out: list[Row] = []
        for start in range(shared, len(ids), self.n_batch):
            if cancel is not None and cancel():
                return None
            part = list(ids[start : start + self.n_batch])
            out += self.decode(part, min(len(part), max(0, start + len(part) - (len(ids) - rows))))
        return out

    def decode(self, ids: list[int], rows: int) -> list[Row]:
        """Append at most `n_batch` ids; afterwards `best` is the token that follows. Rows as in `extend`.

        When rows fail to arrive the graph may have been cut, so that logits are stale and the cache has holes:
        the ids are decoded again without rows, and the rows are reported as missing.
        """
        start = len(self.ids)
        self._run(ids, rows)
        if self._capture.complete:
            taken = self._capture.take(start + len(ids)) if rows else np.empty((0, 0, 0), np.float32)
            return [taken[:, i, : start + len(ids) - rows + i + 1] for i in range(rows)]
        error = self._capture.error
        self.keep(start)
        if error is not None and not isinstance(error, Exception):
            raise error
        if not self._row_error_logged:
            self._row_error_logged = True
            logger.warning("attention rows of %s did not arrive", self.path.name, exc_info=error)
        self._run(ids, 0)
        return [None] * rows

    def _run(self, ids: list[int], rows: int) -> None:
        start, batch = len(self.ids), self._batch
        if not 0 < len(ids) <= self.n_batch or start + len(ids) > self.n_ctx:
            raise TranslationError(f"{len(ids)} tokens do not fit behind {start} in a context of {self.n_ctx}.")
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, start + i, 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = i == len(ids) - 1
        batch.n_tokens = len(ids)
        self._capture.arm(rows)
        threads = self._threads.choose()
        if threads != self._threads_set:
            api.llama_set_n_threads(self._context, threads, threads)
            self._threads_set = threads
        started = time.perf_counter()
        status = api.llama_decode(self._context, batch)
        api.llama_synchronize(self._context)
        if len(ids) == 1:
            self._threads.note(threads, time.perf_counter() - started)
        if status:
            api.llama_memory_seq_rm(self._memory, 0, start, -1)
            raise TranslationError(f"llama.cpp could not compute the next step (status {status}); try again.")
        self.ids += ids

    def best(self) -> int:
        """The most probable next token."""
        logits = api.llama_get_logits_ith(self._context, -1)
        return int(np.ctypeslib.as_array(logits, (self._n_vocab,)).argmax())


def check_file(path: Path) -> None:
    """Raises `TranslationError` for what is no readable GGUF file."""
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise TranslationError(f"The model file {path} cannot be read: {error.strerror or error}.") from error
    if magic != _MAGIC:
        raise TranslationError(f"{path} is not a GGUF model file; choose a file in that format.")


def _load_model(path: Path, progress: Progress | None) -> int:
    params = api.llama_model_default_params()
    params.n_gpu_layers = 0

    @api.llama_progress_callback
    def on_progress(fraction: float, _user_data: object) -> bool:
        if progress is not None:
            progress(fraction, f"Loading {path.name}")
        return True

    params.progress_callback = on_progress
    _complaints.clear()
    model = api.llama_model_load_from_file(os.fsencode(path), params)
    if not model:
        if any("alloc" in line for line in _complaints):
            raise TranslationError(f"There is not enough memory for {path.name}; close other programs and try again.")
        why = next((line for line in _complaints if "error" in line), "; ".join(_complaints))
        why = why.rpartition("error loading model: ")[2].rstrip(".") or "it does not load"
        raise TranslationError(f"The model file {path} is damaged or not supported, fetch it again: {why}.")
    if api.llama_model_has_encoder(model) or not api.llama_model_has_decoder(model):
        api.llama_model_free(model)
        raise TranslationError(f"{path.name} is not a decoder-only language model; choose another model.")
    return int(model)


def _load_adapter(model: int, path: Path) -> Any:
    """The adapter, freed with its model."""
    _complaints.clear()
    lora = api.llama_adapter_lora_init(model, os.fsencode(path))
    if not lora:  # a null pointer object, never None
        why = "; ".join(_complaints).rpartition("failed to apply lora adapter: ")[2].strip().rstrip(".")
        raise TranslationError(f"The adapter file {path} does not fit the model: {why or 'it does not load'}.")
    return lora


def _metadata(model: int, key: str) -> str:
    buffer = ctypes.create_string_buffer(_PIECE_BYTES)
    size = api.llama_model_meta_val_str(model, key.encode(), buffer, _PIECE_BYTES)
    return buffer.value.decode() if size > 0 else ""


def _checked_heads(
    heads: Sequence[tuple[int, int]] | None, layers: int, per_layer: int, path: Path
) -> tuple[tuple[int, int], ...]:
    if heads is None:
        return tuple((layer, head) for layer in range(layers) for head in range(per_layer))
    for layer, head in heads:
        if not (0 <= layer < layers and 0 <= head < per_layer):
            raise TranslationError(
                f"There is no head ({layer}, {head}): {path.name} has {layers} layers of {per_layer} heads."
            )
    return tuple(heads)


def _make_capture(heads: Sequence[tuple[int, int]]) -> RowCapture:
    try:
        return RowCapture(heads)
    except LayoutError as error:
        raise TranslationError(str(error)) from error
