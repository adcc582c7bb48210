"""Export of a session: one writer per format, each a pure function from a `SessionRecord` to text.

Comes in: a `SessionRecord` and what to show: source, target or both. Leaves: a file, written under a
temporary name and moved into place. Imports neither Qt nor anything of the engine.
"""
