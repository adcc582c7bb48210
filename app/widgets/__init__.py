"""What is seen, in Qt. Comes in: the models of the app (`Subtitles`, `Status`). Leaves: what the person asks for, as
Qt signals. Nothing here talks to the engine or a microphone; `app.main` connects the two sides.
"""
