"""Speed: what the program does is measured here and nowhere asserted in tests.

Comes in: a preset, a recording or a model. Leaves: figures on the terminal and JSON artefacts under `results/`, each
with its command, machine and versions. Must not import: Qt, the app (a whole session is run as a separate process).
"""
