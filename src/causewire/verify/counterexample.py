"""A counterexample: one run, step by step, that anybody can repeat.

    words       one line for each step, and why it is wrong
    events      the rows of a trace like any other: to be checked, and to be drawn
    states      the state of each endpoint after each step
    test        a file for pytest that replays it (see `regression`)

That causal order is violated, and by which chain of messages, is said by the check
of traces, which knows nothing of how the run came to be.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.endpoint import Blocked
from ..trace import Event, trace_of
from .obituaries import opened
from .programs import Program, written
from .replay import Happening, Replay, ReplayError, Step, steps_of
from .rows import rows_of
from .setup import Setup
from .states import endpoint_state

__all__ = ["Counterexample", "Step", "steps_of"]


class Counterexample:
    """A run that goes wrong, and what is wrong with it."""

    def __init__(self, setup: Setup, program: Program, steps: Sequence[Step], kind: str) -> None:
        self.setup = setup
        self.program = program
        self.steps = list(steps)
        self.kind = kind
        self.replay = Replay(setup, program, steps)

    def __len__(self) -> int:
        return len(self.steps)

    # -- what went wrong ------------------------------------------------------

    def confirm(self) -> None:
        """Raise an error unless the replay, on endpoints that were never copied, goes wrong.

        Raises:
            ReplayError: The replay does not end as the search said.
        """
        error = self.replay.error
        if (error is not None) != self.kind.startswith("error"):
            raise ReplayError(f"an endpoint raises {error!r}" if error else "no endpoint fails")
        if error is not None:
            return
        if self.kind in ("causal order", "FIFO order", "duplicate"):
            if not self._disordered():
                raise ReplayError("every delivery is in order")
            return
        names = self.setup.names
        for source, destination in self.replay.pending():
            raise ReplayError(f"a packet of {names[source]} to {names[destination]} is on its way")
        if not self._unfinished():
            raise ReplayError("everything is delivered")

    def _disordered(self) -> bool:
        """Whether a delivery repeats another one, or lacks one that had to come before it."""
        known: list[set[str]] = [set() for _ in self.setup.names]
        got: list[set[str]] = [set() for _ in self.setup.names]
        before: dict[str, set[str]] = {}
        to: dict[str, tuple[int, ...]] = {}
        for h in self.replay.happened:
            if h.kind == "send":
                to[h.message], before[h.message] = h.peers, set(known[h.process])
                known[h.process].add(h.message)
            elif h.kind == "deliver":
                needed = {each for each in before[h.message] if h.process in to[each]}
                if h.message in got[h.process] or not needed <= got[h.process]:
                    return True
                got[h.process].add(h.message)
                known[h.process] |= before[h.message] | {h.message}
        return False

    def verdict(self) -> str:
        """What is wrong, in a sentence or two."""
        error = self.replay.error
        if error is not None:
            return f"an endpoint fails: {type(error).__name__}: {error}"
        if self.kind in ("causal order", "FIFO order"):
            return self._overtaken()
        if self.kind == "duplicate":
            last = [h for h in self.replay.happened if h.kind == "deliver"][-1]
            return f"{self.setup.names[last.process]} delivers {last.message} a second time"
        return "nothing more can happen; " + "; ".join(self._unfinished())

    def _overtaken(self) -> str:
        """In the words of the check, which are those for any trace."""
        from ..check import check  # compiled, and not needed before there is something to explain

        return str(check(trace_of(self.events(), "counterexample")).examples[0])

    def _unfinished(self) -> list[str]:
        names = self.setup.names
        happened = self.replay.happened
        clients = self.replay.clients
        got = {(h.message, h.process) for h in happened if h.kind == "deliver"}
        lines = [
            f"{h.message} has not been delivered to {names[j]}"
            for h in happened
            if h.kind == "send"
            for j in h.peers
            if (h.message, j) not in got
        ]
        lines += [f"{names[each.index]} still waits to send" for each in clients if each.left]
        lines += [_held(blocked) for each in clients for blocked in each.endpoint.blocked()]
        return lines or [
            f"{each.endpoint!r} is not idle" for each in clients if not each.endpoint.idle
        ]

    # -- words ----------------------------------------------------------------

    def words(self) -> str:
        """The run in words, one line for each step."""
        network = self.setup.network if self.setup.calls.reacts else "driven in runs"
        lines = [f"{self.setup.name}, {network}, program {written(self.program)}"]
        lines += [f"{k:4}. {line}" for k, line in enumerate(self.lines(), 1)]
        lines.append(f"      {self.verdict()}")
        return "\n".join(lines)

    def lines(self) -> list[str]:
        """What happens in each step."""
        by_step: list[list[Happening]] = [[] for _ in self.steps]
        for happening in self.replay.happened:
            by_step[happening.step].append(happening)
        return [self._line(happened) if happened else "nothing happens" for happened in by_step]

    def _line(self, happened: list[Happening]) -> str:
        names = self.setup.names
        first = happened[0]
        me = names[first.process]
        if first.kind == "drop":
            parts = [f"{_packet(first)} from {self._all(first.peers)} to {me} is lost"]
        elif first.kind == "receive":
            parts = [f"{me} gets {_packet(first)} from {self._all(first.peers)}"]
        else:
            parts = [f"{me} {self._what(first)}"]
        for happening in happened[1:]:
            who = "" if happening.process == first.process else f"{names[happening.process]} "
            parts.append(who + self._what(happening))
        released = {h.message for h in happened if h.kind == "release"}
        to_others = set(first.peers) - {first.process}
        if self.setup.calls.pumps:
            return ", ".join(parts)
        if first.kind == "send" and to_others and first.message not in released:
            parts.append("which is held back")
        return ", ".join(parts)

    def _what(self, happening: Happening) -> str:
        if happening.kind == "deliver":
            return f"delivers {happening.message}"
        if happening.kind == "send":
            to = self._all(happening.peers) or "nobody that is left"
            return f"sends {happening.message} to {to}"
        if happening.kind == "tick":
            return "retransmits"
        if happening.kind == "forget":
            return f"forgets {self._all(happening.peers)}"
        if happening.kind == "stop":
            return "stops"
        if happening.kind == "pump":
            return "takes what is to be sent"
        if happening.kind == "receive":
            return f"gets {_packet(happening)}"
        if happening.message:
            return f"{_packet(happening)} leaves for {self._all(happening.peers)}"
        return f"{_packet(happening)} to {self._all(happening.peers)}"

    def _all(self, processes: Sequence[int]) -> str:
        return " and ".join(self.setup.names[j] for j in processes)

    # -- states ---------------------------------------------------------------

    def states(self) -> list[dict[str, dict[str, str]]]:
        """Return, for each step, the state of each endpoint after it: field by field, as text."""
        states: list[dict[str, dict[str, str]]] = []

        def after(replay: Replay) -> None:
            states.append(
                {
                    name: endpoint_state(client.endpoint)
                    for name, client in zip(self.setup.names, replay.clients, strict=True)
                }
            )

        Replay(self.setup, self.program, self.steps, after)
        return states

    # -- a trace --------------------------------------------------------------

    def events(self) -> list[Event]:
        """The run as the rows of a trace, a microsecond for each step."""
        name = f"verify {self.setup.name}: {self.kind.partition(':')[0]}"
        return rows_of(name, self.setup.names, self.replay.happened)


def _held(blocked: Blocked) -> str:
    waits = ", ".join(map(str, blocked.waits)) or "nothing that will come"
    what = f"{blocked.origin}:{blocked.mid} to {blocked.destination}"
    return f"{what} is held at its {blocked.where}, for {waits}"


def _packet(happening: Happening) -> str:
    """A packet as people read it: kind, message, and what else is in it."""
    assert happening.packet is not None
    obituaries, packet = opened(happening.packet)
    gone = " and ".join(f"p{k}" for k in range(obituaries.bit_length()) if obituaries >> k & 1)
    if packet is None:
        return f"the obituary of {gone}"
    shown = [f"first the obituary of {gone}"] if gone else []
    shown += [
        f"{field}={value}"
        for field, value in zip(type(packet).fields, packet[1:], strict=True)
        if field != "payload" and not (field == "mid" and happening.message)
    ]
    what = " ".join(filter(None, [packet.kind, happening.message]))
    return f"{what} ({', '.join(shown)})" if shown else what
