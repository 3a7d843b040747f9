"""A counterexample as a test: a file for pytest that replays it.

The run becomes a schedule of the testing kit, in the format of `tests/core/cases`:
sends, and which packet of which link arrives or is lost, and what is sent inside
which delivery. The kit lets everything else arrive in the end, and its oracle
judges the whole. A protocol must come through it; one that the registry keeps
because it is wrong must go on failing.
"""

from __future__ import annotations

from typing import Any

from .. import protocols
from ..core.errors import LocalProtocolError
from .counterexample import Counterexample
from .mutants import MUTANTS
from .setup import Setup

__all__ = ["case_of", "regression_test", "repeatable"]


def _tested(found: Counterexample) -> str:
    """The protocol to test: for a mutant the one that it is made of."""
    mutant = MUTANTS.get(found.setup.name)
    return found.setup.name if mutant is None else mutant.of


def _options(found: Counterexample) -> dict[str, Any]:
    """The options of the protocol to test: those of a mutant are its mistake."""
    mutant = MUTANTS.get(found.setup.name)
    mistakes = {} if mutant is None else mutant.options
    return {key: value for key, value in found.setup.about.chosen if key not in mistakes}


def repeatable(setup: Setup) -> bool:
    """Return whether runs of a setup can be cases of the testing kit."""
    network = setup.network
    return not (setup.calls.pumps or network.forgets or network.frozen)


def case_of(found: Counterexample) -> dict[str, Any]:
    """Return the run as a case of the testing kit.

    Raises:
        LocalProtocolError: The testing kit cannot repeat the run (see `repeatable`).
    """
    if not repeatable(found.setup):
        raise LocalProtocolError(
            "the testing kit drives single packets, and neither forgets nor freezes processes"
        )
    network = found.setup.network
    replay = found.replay
    inside = {(client.index, name) for client in replay.clients for _, name in client.reactions}
    schedule: list[list[Any]] = []
    for h in replay.happened:
        if h.kind == "send" and (h.process, h.message) not in inside:
            schedule.append(["send", h.process, list(h.peers), h.message])
        elif h.kind in ("receive", "drop"):
            what = "drop" if h.kind == "drop" else "recv"
            schedule.append([what, h.peers[0], h.process, h.number])
        elif h.kind == "tick":
            schedule.append(["tick", h.process])
    to = {h.message: list(h.peers) for h in replay.happened if h.kind == "send"}
    return {
        "title": f"{found.setup.name}: {found.verdict()}",
        "protocol": _tested(found),
        "corrected_options": _options(found),
        "n": found.setup.processes,
        "net": "fifo" if network.fifo else "reorder" if network.reliable else "lossy",
        "sync": True,
        "ticks": bool(network.ticks or network.rounds or not network.reliable),
        "reactions": [
            [trigger, client.index, to[name], name]
            for client in replay.clients
            for trigger, name in client.reactions
        ],
        "schedule": schedule,
    }


def regression_test(found: Counterexample, source: tuple[str, str] | None = None) -> str:
    """Return the text of a file for pytest.

    Args:
        found: The run to repeat.
        source: The module and the name from which the test imports the protocol, if the
            protocol is not known by its name.
    """
    mutant = MUTANTS.get(found.setup.name)
    protocol = found.setup.about if mutant is None else protocols.describe(mutant.of)
    right = protocol.causal and protocol.live
    check = "outcome.ok, outcome.explain()" if right else "not outcome.ok"
    kind = found.kind.partition(":")[0]
    case = "".join(_entry(key, value) for key, value in case_of(found).items())
    imports, registered = "", ""
    if source is not None:
        module, name = source
        imports = "from causewire import protocols\n"
        registered = f"from {module} import {name}\n\nprotocols.register({name})\n"
    story = "\n".join(f"# {line}".rstrip() for line in found.words().splitlines())
    return f'''"""A run in which {found.setup.name} was found to go wrong: {kind}."""

{imports}from causewire.testing import Case, replay
{registered}
{story}

CASE = {{
{case}}}


def test_{_identifier(found.setup.name)}_{_identifier(kind)}():
    outcome = replay(Case.from_json(CASE))
    assert {check}
'''


def _identifier(text: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in text).lower()


def _entry(key: str, value: Any) -> str:
    """One entry of a case, as source code; a list has a line for each of its items."""
    if isinstance(value, list) and value:
        items = "".join(f"        {item!r},\n" for item in value)
        return f"    {key!r}: [\n{items}    ],\n"
    return f"    {key!r}: {value!r},\n"
