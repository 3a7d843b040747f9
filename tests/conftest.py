"""For all tests: no deadline for an example, which would measure the machine, not the code."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("causewire", deadline=None)
settings.load_profile("causewire")
