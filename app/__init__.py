"""The app process: window, terminal, microphone, transcript.

Comes in: sound from a microphone or a file, and events from the engine. Leaves: subtitles, transcripts and exports.
Of the engine it imports `engine.messages`, `engine.presets` and `engine.schemas` only, and never torch, transformers
or vllm.
Qt lives in `widgets`, in `main` and what it wires (`dialogs`, `transcripts`, `window_services`, `single_instance`), and
in `i18n`; everything else here runs without it.
"""
