"""Recognisers: speech in, words with times out, behind one small contract.

Comes in: speech as float32 mono at 16 kHz with its place on the session clock. Leaves: `contract.Transcript`, closed
utterances and the open one as committed words and tail. Must not import: Qt, the app, translators, `alignatt`.
`agreement`, `utterances`, `guards`, `alignment` and `qwen_text` are pure. `streaming` makes a recogniser of any window
decoder; only `whisper` and `speech_engine` touch a model; `factory` loads a preset's models for any number of sessions.
"""
