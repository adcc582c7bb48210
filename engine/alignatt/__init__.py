"""AlignAtt: how much of a draft may be shown as stable. Pure functions over words, rows and numbers.

Comes in: source units, the frontier, a draft with its provenance rows, a policy. Leaves: a decision with a trace.
Must not import: any other room of the engine, Qt, torch, transformers or vllm. It reads no clock and does no I/O,
except that `heads` reads head-set files.
"""
