"""For all tests: what would otherwise depend on the machine, or on how they were started."""

from __future__ import annotations

import signal

from hypothesis import settings

# A deadline for an example would measure the machine, not the code.
settings.register_profile("causewire", deadline=None)
settings.load_profile("causewire")

# Who is started in the background ignores interrupts, and so would the processes of the tests.
signal.signal(signal.SIGINT, signal.default_int_handler)
