"""Fine-tuning: the packaged translator taught to translate talks, also half sentences, as a small adapter.

Comes in: parallel sentences (`resources/training`), the packaged weights. Leaves: an adapter in two file formats
(`resources/adapters`), scores, curves. Must not import: Qt, the app, the session, the other rooms on its floor.
"""
