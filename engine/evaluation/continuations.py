"""A translator that remembers: greedy continuations that are known are not generated again.

Greedy decoding makes the token behind a source and a target prefix a fact. Policies that are compared on the same
talks draft behind the same prefixes again and again; a draft that is known in part is completed, not repeated.
(Splitting a draft may change a near tie between two tokens; every policy then sees the same choice.)
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.alignatt.clean import trim
from engine.alignatt.draft import Draft
from engine.mt.contract import Cancel, CaptureHealth, Source, Translator


class StoreError(Exception):
    """A file of continuations that cannot be used; the message is one sentence."""


@dataclass(slots=True)
class Savings:
    """Tokens that drafts asked for, and those that the model had to generate for them."""

    tokens: int = 0
    generated: int = 0
    calls: int = 0

    def add(self, other: Savings) -> None:
        """Count in another's."""
        self.tokens += other.tokens
        self.generated += other.generated
        self.calls += other.calls


class RememberingTranslator:
    """`Translator` in front of another. With `path`, what is learnt is appended there and read again next time.

    `identity` names model, heads and prompt: a file that was written under another identity is refused.
    Raises `StoreError`.
    """

    def __init__(self, inner: Translator, path: Path | None = None, identity: str = "") -> None:
        self.health: CaptureHealth = inner.health
        self.supports_shared_kv: bool = inner.supports_shared_kv
        self._inner = inner
        self._known: dict[str, list[Draft]] = {}
        self._lengths: dict[str, int] = {}
        self._path = path
        self.savings = Savings()
        if path is not None:
            self._open(path, identity)

    def draft(
        self, session_id: str, source: Source, prefill_ids: Sequence[int], max_new_tokens: int, cancel: Cancel
    ) -> Draft:
        """See `Translator.draft`. A draft that uses up its budget has finish "length", whatever is known behind it."""
        key, prefill = json.dumps(astuple(source), ensure_ascii=False), tuple(prefill_ids)
        known = self._longest(key, prefill)
        if known is None or (known.finish == "length" and len(known.token_ids) < max_new_tokens):
            known = self._extend(key, session_id, source, prefill, known, max_new_tokens, cancel)
        self.savings.tokens += min(len(known.token_ids), max_new_tokens)
        if len(known.token_ids) < max_new_tokens:
            return known
        return trim(known, max_new_tokens, "length")

    def count_tokens(self, text: str) -> int:
        """See `Translator.count_tokens`."""
        if text not in self._lengths:
            self._lengths[text] = self._inner.count_tokens(text)
        return self._lengths[text]

    def encode_target(self, text: str) -> list[int]:
        """See `Translator.encode_target`."""
        return self._inner.encode_target(text)

    def close_session(self, session_id: str) -> None:
        """See `Translator.close_session`."""
        self._inner.close_session(session_id)

    def close(self) -> None:
        """See `Translator.close`."""
        self._inner.close()

    def _longest(self, key: str, prefill: tuple[int, ...]) -> Draft | None:
        """What is known behind `prefill`: the rest of a draft that began earlier and went on exactly so."""
        best: Draft | None = None
        for draft in self._known.get(key, ()):
            done = len(prefill) - len(draft.prefill_ids)
            follows = 0 <= done <= len(draft.token_ids) and (*draft.prefill_ids, *draft.token_ids[:done]) == prefill
            if follows and (best is None or len(draft.token_ids) - done > len(best.token_ids)):
                best = _behind(draft, done)
        return best

    def _extend(
        self,
        key: str,
        session_id: str,
        source: Source,
        prefill: tuple[int, ...],
        known: Draft | None,
        max_new_tokens: int,
        cancel: Cancel,
    ) -> Draft:
        have = known.token_ids if known else ()
        more = self._inner.draft(session_id, source, (*prefill, *have), max_new_tokens - len(have), cancel)
        if more.finish == "cancelled":
            return more
        self.savings.calls += 1
        self.savings.generated += len(more.token_ids)
        whole = _joined(known, more) if known else more
        self._known.setdefault(key, []).append(whole)
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"source": key, **_to_json(whole)}) + "\n")
        return whole

    def _open(self, path: Path, identity: str) -> None:
        try:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps({"identity": identity}) + "\n", encoding="utf-8")
                return
            rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
            if json.loads(rows[0])["identity"] != identity:
                raise StoreError(f"The drafts in {path} are of another model or set of heads; name another file.")
            if not rows[-1].endswith("\n"):  # half a line of a writer that was killed
                path.write_text("".join(rows[:-1]), encoding="utf-8")
                rows.pop()
            for row in rows[1:]:
                data = json.loads(row)
                self._known.setdefault(data["source"], []).append(_from_json(data))
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            raise StoreError(f"The drafts in {path} cannot be read ({error}); delete the file.") from error


def _behind(draft: Draft, done: int) -> Draft:
    """The draft as it continues behind its first `done` tokens."""
    return replace(
        draft,
        prefill_ids=(*draft.prefill_ids, *draft.token_ids[:done]),
        token_ids=draft.token_ids[done:],
        pieces=draft.pieces[done:],
        rows=draft.rows[done:],
        prompt=draft.prompt[done:],
        suffix=draft.suffix[done:],
        missing=draft.missing[done:],
    )


def _joined(first: Draft, second: Draft) -> Draft:
    """Two drafts of one source, the second behind the first."""
    return Draft(
        prefill_ids=first.prefill_ids,
        token_ids=(*first.token_ids, *second.token_ids),
        pieces=(*first.pieces, *second.pieces),
        rows=np.concatenate((first.rows, second.rows)),
        prompt=np.concatenate((first.prompt, second.prompt)),
        suffix=np.concatenate((first.suffix, second.suffix)),
        missing=np.concatenate((first.missing, second.missing)),
        finish=second.finish,
    )


def _to_json(draft: Draft) -> dict[str, Any]:
    """Arrays as base64 of their little-endian float32 bytes, so that what is read back is equal bit by bit."""
    return {
        "prefill": draft.prefill_ids,
        "ids": draft.token_ids,
        "pieces": [_pack(piece) for piece in draft.pieces],
        "units": draft.rows.shape[1],
        "rows": _pack(draft.rows.astype("<f4").tobytes()),
        "prompt": _pack(draft.prompt.astype("<f4").tobytes()),
        "suffix": _pack(draft.suffix.astype("<f4").tobytes()),
        "missing": draft.missing.tolist(),
        "finish": draft.finish,
    }


def _from_json(data: dict[str, Any]) -> Draft:
    tokens = len(data["ids"])
    return Draft(
        prefill_ids=tuple(data["prefill"]),
        token_ids=tuple(data["ids"]),
        pieces=tuple(base64.b64decode(piece) for piece in data["pieces"]),
        rows=_floats(data["rows"]).reshape(tokens, data["units"]),
        prompt=_floats(data["prompt"]),
        suffix=_floats(data["suffix"]),
        missing=np.array(data["missing"], np.bool_),
        finish=data["finish"],
    )


def _pack(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _floats(packed: str) -> NDArray[np.float32]:
    return np.frombuffer(base64.b64decode(packed), "<f4").astype(np.float32)
