"""Evaluation: what a session log is worth, and sessions driven from text.

Comes in: session logs, reference translations, talks as text with the times of their segments. Leaves: scores of
quality and latency (sacrebleu, OmniSTEval), logs of replayed sessions. Must not import: Qt, the app, the speaker
session, model libraries.
"""
