"""What artefacts say of the machine that they come from."""

from __future__ import annotations

import platform

from engine.benchmarks.machine import machine


def test_processor_and_system_are_named_and_the_build_of_the_kernel_is_not() -> None:
    found = machine()
    assert found["cpu"]
    assert found["cores"] >= 1
    assert found["system"] == f"{platform.system()} {platform.machine()}"
    assert platform.release() not in str(found)
