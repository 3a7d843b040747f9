"""Groups on a link that members pass through: nothing grows with all who ever came."""

from __future__ import annotations

from typing import Any

import pytest

from causewire.transport import TransportConfig
from causewire.transport.link import Link

from .pair import interpreted, payloads
from .three import Three, transport


def sizes(group: Three, name: str) -> list[int]:
    """Return the size of everything that a process keeps for its group and its peers."""
    one = group[name]
    link, peers = one._carrier, one._peers
    assert isinstance(link, Link)
    kept: list[Any] = [*vars(link).values(), *vars(link._epochs).values(), *vars(peers).values()]
    tables = [value for value in kept if isinstance(value, dict | set | list | tuple)]
    tables += [link._fifo._peers, link._fifo._forgotten]
    tables += [value for table in tables for value in table if isinstance(value, dict)]
    return [len(table) for table in tables]


def visit(group: Three, k: int) -> None:
    """Have a process join the group, talk to the others, and leave."""
    name, place = f"visitor {k}", ("127.0.0.1", 100 + k)
    group.places[name] = place
    group.all[name] = transport(name, (100 + k) << 20, **group.settings)
    group.introduce(name)
    group.run(0.1)
    others = ["ann", "bob", "carol"]
    assert group[name].send(others, b"hello") is not None
    group.run(0.1)
    assert group["ann"].send(["bob", "carol", name], b"welcome") is not None
    group.run(0.1)
    assert payloads(group[name]) == [b"welcome"]
    assert payloads(group["bob"]) == [b"hello", b"welcome"]
    group[name].close()
    group.run(0.1)
    assert not group[name].unheard
    del group.all[name], group.places[name]
    group.run(0.6)


@interpreted
@pytest.mark.parametrize("protocol", ["ks", "bss"])
def test_members_that_come_and_go_leave_nothing_behind(protocol: str) -> None:
    """Thousands pass through a group of three: state and datagrams stay as they are."""
    group = Three(protocol=protocol, config=TransportConfig(linger=1.0, keepalive=1000.0))
    history = []
    for k in range(40):
        before = group.carried
        visit(group, k)
        history.append((group.carried - before, sizes(group, "ann")))
    early, late = history[9], history[-1]
    assert late[0] < 1.05 * early[0]  # numbers have become longer
    assert late[1] == early[1]
