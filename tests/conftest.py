"""What holds for every test: no screen is needed, and a busy machine fails nothing."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

# A property is about values. How long one example takes says only what else the machine is doing.
settings.register_profile("surtitle", deadline=None)
settings.load_profile("surtitle")
