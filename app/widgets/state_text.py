"""The words for what the program is doing, in the interface's language."""

from __future__ import annotations

from app.i18n import fill, translate
from app.status import BEHIND_S, Phase, Status

TROUBLE = (Phase.SOURCE_LOST, Phase.ENGINE_STOPPED, Phase.FAILED)


def state_line(status: Status) -> str:
    """As `Status.line`. Sentences from elsewhere (what went wrong, what is being loaded) stay as they are."""
    match status.phase:
        case Phase.OFF:
            return translate("State", "Off")
        case Phase.LOADING:
            return _loading(status)
        case Phase.READY:
            return status.text or translate("State", "Ready")
        case Phase.LISTENING if status.lag_s >= BEHIND_S:
            return fill(translate("State", "{seconds:.1f} s behind"), seconds=status.lag_s)
        case Phase.LISTENING:
            return translate("State", "Speech") if status.speech else translate("State", "Listening")
        case Phase.STOPPING:
            return translate("State", "Finishing the last words")
        case Phase.SOURCE_LOST:
            return status.text or translate("State", "The microphone was lost")
        case Phase.ENGINE_STOPPED:
            return status.text or translate("State", "The engine stopped")
        case Phase.FAILED:
            return status.text


def quality_text(quality: str) -> str:
    """The label of a preset's quality."""
    return translate("State", "demo quality") if quality == "demo quality" else quality


def _loading(status: Status) -> str:
    if status.progress is None:
        return f"{translate('State', 'Loading')}: {status.text}" if status.text else translate("State", "Loading")
    head = fill(translate("State", "Loading {percent}%"), percent=round(100 * status.progress))
    return f"{head}: {status.text}" if status.text else head
