"""The sub-commands of `surtitle`.

Comes in: parsed arguments. Leaves: text on standard output, sentences on standard error, an exit status. Each module
has `add_arguments(parser)` and `run(args) -> int`. Imports no Qt at the top, so that the terminal needs none.
"""
