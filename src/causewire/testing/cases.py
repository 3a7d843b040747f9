"""A case: one run, written down as data, that can be stored and replayed.

It contains what the processes send, what they send in reaction to deliveries, and a
schedule: the order in which things happen. A case that failed once is worth keeping.
`tests/core/cases` has those on which a literal reading of some paper fails, and its README
describes the JSON format. In memory a case is the same, with processes by name (`p0`,
`p1`, ...) and a protocol by name or by value.

Actions of a schedule:

    ("send", process, (destination, ...), name)    application send
    ("recv", source, destination, k)               the k-th packet, from 0, that ever
                                                   went over that link arrives
    ("drop", source, destination, k)               it is lost
    ("tick", process)                              the periodic block of a process runs
    ("take", process)                              its packets are collected (`lazy`)

An action that is impossible when its turn comes is skipped: the packet was not sent, or the
network of the case cannot do this. A second "recv" of one packet is a duplication.

A message whose name is in capitals has the payload None, the others their name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from .. import protocols
from ..protocols import Protocol

__all__ = ["Action", "Case", "Reaction", "load", "process_names"]

Action: TypeAlias = tuple[Any, ...]


class Reaction(NamedTuple):
    """When `process` delivers the message named `trigger`, it sends `name`."""

    trigger: str
    process: str
    to: tuple[str, ...]
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A run as data: replaying it does the same each time."""

    protocol: str | Protocol
    options: Mapping[str, Any] = field(default_factory=dict)
    processes: tuple[str, ...]
    net: str
    """Name of the profile of the network (`causewire.testing.profiles`)."""
    inside: bool = True
    """Reactions are sent from inside the delivery, or after the packet was handled."""
    lazy: bool = False
    """Packets are collected only by "take" actions, and in the end."""
    ticks: bool = True
    """Whether the periodic blocks run in the end, when all packets have arrived."""
    reactions: tuple[Reaction, ...] = ()
    schedule: tuple[Action, ...] = ()
    title: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the case as in a file; its `corrected_options` are the ones to run with.

        A protocol is written by its name. If it is not one that is known by name, whoever
        reads the file has to `register` it.
        """
        about = protocols.describe(self.protocol).with_options(**self.options)
        index = {name: k for k, name in enumerate(self.processes)}

        def numbers(names: tuple[str, ...]) -> list[int]:
            return [index[name] for name in names]

        def action(entry: Action) -> list[Any]:
            if entry[0] == "send":
                return ["send", index[entry[1]], numbers(entry[2]), entry[3]]
            return [index.get(x, x) for x in entry]

        return {
            "title": self.title,
            "protocol": about.name,
            "corrected_options": dict(about.chosen),
            "n": len(self.processes),
            "net": self.net,
            "sync": self.inside,
            "ticks": self.ticks,
            **({"lazy": True} if self.lazy else {}),
            "reactions": [
                [trigger, index[process], numbers(to), name]
                for trigger, process, to, name in self.reactions
            ],
            "schedule": [action(entry) for entry in self.schedule],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Case:
        """Return a case from the contents of a file, for the repaired protocol."""
        processes = process_names(data["n"])

        def names(numbers: list[int]) -> tuple[str, ...]:
            return tuple(processes[k] for k in numbers)

        def action(entry: list[Any]) -> Action:
            if entry[0] == "send":
                return ("send", processes[entry[1]], names(entry[2]), entry[3])
            if entry[0] in ("recv", "drop"):
                return (entry[0], processes[entry[1]], processes[entry[2]], entry[3])
            return (entry[0], processes[entry[1]])

        protocol, options = _repaired(data["protocol"], data["corrected_options"] or {})
        return cls(
            protocol=protocol,
            options=options,
            processes=processes,
            net=data["net"],
            inside=data["sync"],
            lazy=data.get("lazy", False),
            ticks=data["ticks"],
            reactions=tuple(
                Reaction(trigger, processes[k], names(to), name)
                for trigger, k, to, name in data["reactions"]
            ),
            schedule=tuple(map(action, data["schedule"])),
            title=data["title"],
        )


def load(path: str | Path) -> Case:
    """Return the case in a file."""
    return Case.from_json(json.loads(Path(path).read_text(encoding="utf-8")))


def process_names(n: int) -> tuple[str, ...]:
    """Return names for processes 0 to n-1."""
    return tuple(f"p{k}" for k in range(n))


_OUR_NAMES = {
    "almeida_basic": "csps",
    "almeida_multicast": "csps",
    "almeida_sps": "sps",
    "almeida_sps_multicast": "sps",
}


def _repaired(protocol: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Our name for a protocol as the papers' cases have it, and our options.

    `early` (ERRATA 1.5) is not an option here: early permits are always remembered.
    The three schemes of positive acknowledgement are three protocols here.
    """
    name = _OUR_NAMES.get(protocol, protocol)
    if name == "pak" and options.get("scheme") == "paknak":
        name = "pak-nak"
    elif name == "pak" and options.get("ct", 1) > 1:
        name = "pak-credit"
    known = protocols.describe(name).options
    return name, {key: value for key, value in options.items() if key in known}
