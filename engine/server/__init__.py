"""MT server: this program's translator for other programs, protocol v1 over WebSocket.

Comes in: JSON frames of clients (`init`, `update`). Leaves: JSON frames (`init_ok`, `translation`, `error`), `/healthz`
and `/metrics`. One connection is one session; all share one translator. Must not import: Qt, the app, the recognisers'
models, a model library (the factory of `mt` does that).
"""
