"""For all tests: what would otherwise depend on the machine, or on how they were started."""

from __future__ import annotations

import signal

from hypothesis import settings

# A deadline for an example would measure the machine, not the code. The same examples in
# every run, so that a failure is caused by a change; `--hypothesis-profile=random` draws new
# ones (`make fuzz`).
settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
settings.register_profile("random", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("repeatable")

# A process that is started in the background ignores interrupts, and so would its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
