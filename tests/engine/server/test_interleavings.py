"""Several clients, any order of updates, reconnects in between: what is on the wire only ever grows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.alignatt.policy import Policy
from engine.server.translation import Terms
from tests.engine.mt.scripted import ScriptedTranslator
from tests.engine.server.harness import Client, Running, serving

# The server's threads make the payloads of their pings with `random`, also while an example is being drawn.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the .random. module inside strategies")

CLIENTS = 3


@pytest.fixture(scope="module", params=["alignatt", "hold_n", "local_agreement", "wait_k"])
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    with serving(ScriptedTranslator(), terms=Terms(Policy(name=request.param), max_words=9), workers=2) as running:
        yield running


class Talker:
    """A client that says its own words and knows what must come back. Answers are read only now and then."""

    def __init__(self, name: str, server: Running) -> None:
        self.name, self.url = name, server.url
        self.client = Client(server.url)
        self.client.init()
        self.utterance_id, self.words, self.committed = 0, 0, 0
        self.text = ""

    def say(self, more: int, tail: int, final: bool, wait: bool) -> None:
        self.committed += more
        self.words = self.committed + tail
        words = [f"{self.name}{self.utterance_id}-{at}" for at in range(self.words)]
        seq = self.client.update(
            " ".join(words[: self.committed]), " ".join(words[self.committed :]), final, self.utterance_id
        )
        if final or wait or self.committed > 9:
            self.wait_for(seq, words[: self.committed], final)

    def wait_for(self, seq: int, words: list[str], final: bool) -> None:
        """Read until the answer; a forced final of an earlier update may be the last that comes."""
        while True:
            answer = self.client.receive()
            assert answer["type"] == "translation"
            assert answer["utterance_id"] == self.utterance_id
            assert answer["committed_text"].startswith(self.text)
            self.text = answer["committed_text"]
            if answer["seq"] == seq:
                break
        if answer["final"]:
            # policies that do not look at the frontier may have released a tail that never came
            assert answer["committed_text"].split()[: len(words)] == [word.upper() for word in words]
            assert answer["forced_final"] != final
            self.utterance_id, self.committed, self.text = self.utterance_id + 1, 0, ""

    def reconnect(self) -> None:
        """The connection dies; a new one is told what is on screen."""
        self.client.socket.close()
        shown = self.text
        self.client = Client(self.url)
        self.client.init(accepted_target_prefix=shown)
        self.client.shown = {self.utterance_id: shown}


actions = st.tuples(st.integers(0, CLIENTS - 1), st.integers(0, 4), st.integers(0, 3), st.booleans(), st.booleans())


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(actions, st.integers(0, CLIENTS - 1)), max_size=30))
def test_the_wire_is_append_only(server: Running, steps: list[tuple[int, int, int, bool, bool] | int]) -> None:
    with ExitStack() as open_clients:
        talkers = [Talker(name, server) for name in "abc"]
        for talker in talkers:
            open_clients.callback(lambda talker=talker: talker.client.socket.close())
        for step in steps:
            if isinstance(step, int):
                talkers[step].reconnect()
            else:
                who, more, tail, final, wait = step
                talkers[who].say(more, tail, final, wait)
        for talker in talkers:
            talker.say(1, 0, True, True)
    assert server.metric("append_only_violations_total") == 0
