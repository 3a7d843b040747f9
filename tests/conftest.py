"""For all tests: what would otherwise depend on the machine, or on how they were started."""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import Any

import pytest
from hypothesis import settings

from .groups import GROUPS, group_of

# A deadline for an example would measure the machine, not the code. The same examples in
# every run, so that a failure is caused by a change; `--hypothesis-profile=random` draws new
# ones (`make fuzz`).
settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
settings.register_profile("random", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("repeatable")

# A process that is started in the background ignores interrupts, and so would its children.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run long groups first, then files with many slow tests: no process is idle at the end."""
    slow = Counter(group_of(item.nodeid) for item in items if item.get_closest_marker("slow"))
    ranks = {group: rank for rank, group in enumerate(GROUPS)}

    def key(item: pytest.Item) -> tuple[int, int]:
        group = group_of(item.nodeid)
        return ranks.get(group, len(ranks)), -slow[group]

    items.sort(key=key)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """With `-n auto`, one test process more than cores: many tests wait for processes or time."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With several test processes, the tests of a group go to one of them, in order."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    config.option.loadscopereorder = False
    return ByGroup(config, log)
