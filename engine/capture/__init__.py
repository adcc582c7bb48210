"""Attention rows out of a running vLLM engine, CUDA graphs on: tap, slot bookkeeping, row kernel, self-test, guard.

Comes in: prompts as token ids with a `RowRequest` (which columns are source, which row belongs to a token). Leaves:
generated tokens with one attention row per token and head, and a `ModeRecord` that says how the engine runs and
whether that was verified. `modes`, `slots`, `request` and `copy` need no vllm and no torch.
Must not import: Qt, the app, the session, recognisers or translators.
"""
