"""What artefacts say of the machine that they come from."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """Processor, cores and system, without the kernel's release: builds of it may name hosts."""
    return {"cpu": _cpu(), "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"}


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
