"""Recognisers: speech in, words with times out, behind one small contract.

Comes in: speech as float32 mono at 16 kHz with its place on the session clock. Leaves: `contract.Transcript`, closed
utterances and the open one as committed words and tail. Must not import: Qt, the app, translators, `alignatt`.
`agreement` and `utterances` are pure; only `whisper` (and its like) touch a model; `factory` builds a recogniser.
"""
