"""Which tests run in the same process when there are several.

Tests of a group share what takes long to make: compiled kernels, a Spark session, a
cluster, or the fixtures of their file. The mark `xdist_group` of pytest-xdist would say the
same, but the plugin writes it to an attribute that pytest no longer has.
"""

from __future__ import annotations

GROUPS = {
    "kernels": ("tests/check/", "tests/metrics/"),
    "cluster": ("tests/pipeline/test_cluster.py", "tests/pipeline/test_connect.py"),
    "spark": ("tests/pipeline/",),
}
"""Where the tests of each group are, in the order in which the groups are started.

The first process compiles the kernels, which are then on disk for those who need them later,
while the second one starts a cluster.
"""


def group_of(nodeid: str) -> str:
    """Return the group of a test: one of `GROUPS`, or its file."""
    for group, places in GROUPS.items():
        if nodeid.startswith(places):
            return group
    return nodeid.partition("::")[0]
