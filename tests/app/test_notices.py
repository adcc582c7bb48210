"""What is not well: states stay until they are over, moments pass by themselves, and nothing is said twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from app import notices
from app.notices import ENGINE, Notices
from tests.app.helpers import until


def play(scenario: Callable[[Notices, list[tuple[str, ...]]], Awaitable[None]]) -> None:
    async def run() -> None:
        seen: list[tuple[str, ...]] = []
        notes = Notices(lambda: seen.append(notes.sentences))
        await scenario(notes, seen)

    asyncio.run(run())


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "MOMENT_S", 0.02)


@pytest.mark.usefixtures("short")
def test_a_moment_passes_and_a_state_stays() -> None:
    async def scenario(notes: Notices, seen: list[tuple[str, ...]]) -> None:
        notes.health("capture", "Rows are missing.")
        notes.moment(ENGINE, "One piece failed.", over=True)
        assert seen[-1] == ("Rows are missing.", "One piece failed.")
        await until(lambda: seen[-1] == ("Rows are missing.",))
        notes.health("capture", "")
        assert seen[-1] == ()

    play(scenario)


@pytest.mark.usefixtures("short")
def test_a_moment_that_is_not_over_stays_until_it_is() -> None:
    async def scenario(notes: Notices, seen: list[tuple[str, ...]]) -> None:
        notes.moment(ENGINE, "One piece failed.", over=False)
        await asyncio.sleep(0.1)
        assert notes.sentences == ("One piece failed.",)
        notes.passed(ENGINE)
        await until(lambda: notes.sentences == ())

    play(scenario)


def test_what_is_over_can_still_be_read() -> None:
    async def scenario(notes: Notices, seen: list[tuple[str, ...]]) -> None:
        notes.moment(ENGINE, "One piece failed.", over=True)
        notes.passed(ENGINE)
        await asyncio.sleep(0.05)
        assert notes.sentences == ("One piece failed.",)

    play(scenario)


@pytest.mark.usefixtures("short")
def test_a_moment_does_not_end_the_one_behind_it() -> None:
    async def scenario(notes: Notices, seen: list[tuple[str, ...]]) -> None:
        notes.moment(ENGINE, "One piece failed.", over=True)
        notes.moment(ENGINE, "Another piece failed.", over=False)
        await asyncio.sleep(0.1)
        assert notes.sentences == ("Another piece failed.",)

    play(scenario)


def test_components_and_origins_do_not_take_back_what_another_says() -> None:
    async def scenario(notes: Notices, seen: list[tuple[str, ...]]) -> None:
        notes.say("record", "The disk is full.")
        notes.health("library", "Torch stands in.")
        notes.health("translator", "")
        notes.say("source", "The microphone is looked for.")
        assert seen[-1] == ("The microphone is looked for.", "Torch stands in.", "The disk is full.")
        notes.begin()
        assert seen[-1] == ("The microphone is looked for.", "The disk is full.")
        notes.clear()
        assert seen[-1] == ()

    play(scenario)
