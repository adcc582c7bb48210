"""Calibration: which attention heads of a model carry the alignment between source and target.

Comes in: sentence pairs, given or estimated word alignments, a translator that can be teacher-forced. Leaves: a head
set with its scores, their stability and the provenance of the data. Must not import: Qt, the app, the session.
"""
