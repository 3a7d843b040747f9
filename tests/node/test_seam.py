"""The seam between drivers and the transport stays narrow.

Everything that `causewire.node` and `causewire.blocking` use of `Transport` and `Session` is
listed here, so that a new member is a decision.
"""

from __future__ import annotations

import ast
from pathlib import Path

import causewire

ROOT = Path(causewire.__file__).parent
DRIVERS = [*sorted((ROOT / "node").glob("*.py")), *(ROOT / "blocking").glob("*.py")]

DRIVING = {
    "abort",
    "add_peer",
    "close",
    "datagram_received",
    "datagrams_to_send",
    "forget",
    "handled",
    "next_event",
    "next_timer",
    "refill",
    "send",
    "timer_fired",
    "try_send",
    "withdraw",
}
"""What drives a transport."""

ASKING = {
    "blocked", "config", "idle", "journal", "list_bytes", "me", "message_number", "observer",
    "postponed", "settled", "stats", "status", "unheard",
}  # fmt: skip
"""What tells about it."""

SESSION = {"confirmed", "established", "handled", "name", "over"}


def members(names: set[str]) -> set[str]:
    """Attributes that drivers read from variables and attributes with these names."""
    found: set[str] = set()
    for path in DRIVERS:
        for item in ast.walk(ast.parse(path.read_text())):
            if isinstance(item, ast.Attribute):
                owner = item.value
                name = owner.attr if isinstance(owner, ast.Attribute) else None
                if isinstance(owner, ast.Name):
                    name = owner.id
                if name in names:
                    found.add(item.attr)
    return found


def test_what_drivers_use_of_a_transport() -> None:
    assert members({"transport", "_transport", "old"}) == DRIVING | ASKING
    assert len(DRIVING) <= 14


def test_what_drivers_use_of_a_session() -> None:
    observers = {"alias", "incarnation", "label"}  # for traces, and for `Node.on_held`
    assert members({"session", "s"}) - observers == SESSION


def test_the_transport_neither_waits_nor_does_input_or_output() -> None:
    forbidden = {"asyncio", "selectors", "socket", "threading", "time", "random", "secrets", "os"}
    for path in (ROOT / "transport").glob("*.py"):
        for item in ast.walk(ast.parse(path.read_text())):
            if isinstance(item, ast.Import):
                names = {alias.name.partition(".")[0] for alias in item.names}
            elif isinstance(item, ast.ImportFrom) and not item.level:
                names = {(item.module or "").partition(".")[0]}
            else:
                continue
            assert not names & forbidden, path.name


def test_the_blocking_node_is_not_asyncio_in_disguise() -> None:
    for path in (ROOT / "blocking").glob("*.py"):
        for item in ast.walk(ast.parse(path.read_text())):
            assert not isinstance(item, ast.AsyncFunctionDef | ast.Await)
            if isinstance(item, ast.Import | ast.ImportFrom):
                assert "asyncio" not in ast.unparse(item)


def test_modules_are_short() -> None:
    for path in [*DRIVERS, *(ROOT / "transport").glob("*.py")]:
        assert len(path.read_text().splitlines()) <= 500, path.name
