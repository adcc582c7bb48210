"""The engine: the background process and everything it hosts.

Comes in: commands and PCM frames from the app (`engine.messages`), or a command line (`python -m engine COMMAND`).
Leaves: captions, health, progress and errors, again as `engine.messages`.
Never imports Qt or `app`. Inside, imports point down: process → session → asr, mt → alignatt.
"""

__version__ = "0.1.0"
