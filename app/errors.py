"""The one kind of exception that reaches a person."""

from __future__ import annotations


class UserError(Exception):
    """Its message is one sentence that says what happened and what to do; details belong in the log."""
