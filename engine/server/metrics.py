"""What the server counts, for Prometheus. Each server has a registry of its own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from engine.mt.contract import CaptureHealth
from engine.server.protocol import Answer

SECONDS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Names begin with `surtitle_mt_`; times are in seconds."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.sessions_open = self._gauge("sessions_open", "Sessions open now.")
        self.sessions = self._counter("sessions", "Sessions begun.")
        self.rejected = self._counter("rejected", "Connections and inits refused.", "reason")
        self.updates = self._counter("updates", "Updates received.", "kind")
        self.superseded = self._counter("superseded", "Updates that a newer one replaced.", "when")
        self.answers = self._counter("answers", "Translations sent.", "kind")
        self.errors = self._counter("errors", "Error frames sent.", "code")
        self.drafts = self._counter("drafts", "Drafts of the model, cancelled ones included.")
        self.drafts_running = self._gauge("drafts_running", "Drafts in progress.")
        self.drafts_waiting = self._gauge("drafts_waiting", "Sessions that wait for a draft.")
        self.fast_path = self._counter("fast_path_releases", "Releases on commit: text released without a draft.")
        self.released = self._counter("released_tokens", "Draft tokens that became stable.")
        self.held = self._counter(
            "held_tokens", "Draft tokens still held when an answer was sent, summed over answers."
        )
        self.violations = self._counter("append_only_violations", "Texts not sent because they would change sent ones.")
        self.draft_seconds = self._histogram("draft_seconds", "Making an answer with a draft.")
        self.fast_path_seconds = self._histogram("fast_path_seconds", "Making an answer without a draft.")
        self.answer_seconds = self._histogram("answer_seconds", "From an update's arrival to its answer.", "kind")
        self._health = {
            name: self._gauge(f"capture_rows_{name}", f"Attention rows {name} since the start.")
            for name in ("expected", "missing", "nonfinite")
        }
        self._capture_ok = self._gauge("capture_ok", "1 when attention rows are healthy, else 0.", "mode", "self_test")

    def answered(self, answer: Answer, arrived_to_sent_s: float, released: int, held: int) -> None:
        """Count one answer; `released` tokens became stable by it, `held` are in its buffer."""
        kind = "final" if answer.final else "partial"
        self.answers.labels(kind).inc()
        self.answer_seconds.labels(kind).observe(arrived_to_sent_s)
        made_in = self.draft_seconds if answer.engine_calls else self.fast_path_seconds
        made_in.observe(answer.server_ms / 1000)
        self.released.inc(released)
        self.held.inc(held)
        if released and not answer.engine_calls:
            self.fast_path.inc()

    def page(self, health: CaptureHealth, ok: bool) -> bytes:
        """The text of `/metrics`."""
        self._health["expected"].set(health.rows_expected)
        self._health["missing"].set(health.rows_missing)
        self._health["nonfinite"].set(health.rows_nonfinite)
        self._capture_ok.clear()
        self._capture_ok.labels(health.mode, health.self_test).set(int(ok))
        return generate_latest(self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"surtitle_mt_{name}", text, labels, registry=self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"surtitle_mt_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(f"surtitle_mt_{name}", text, labels, registry=self.registry, buckets=SECONDS)
