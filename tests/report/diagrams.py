"""Making traces to draw, and reading drawings back."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any, NamedTuple

from causewire.sim import Config, simulate
from causewire.trace import Event

SVG = "{http://www.w3.org/2000/svg}"


class _Rows(list[Event]):
    def write(self, event: Event) -> None:
        self.append(event)


def simulated(
    protocol: str, processes: Any = 4, messages: int = 24, **settings: Any
) -> list[Event]:
    """The rows of a small run."""
    rows = _Rows()
    settings = {"workload": {"kind": "relay", "hops": 4}, "seed": 3, **settings}
    config = {"protocol": protocol, "processes": processes, "messages": messages, **settings}
    simulate(Config.from_dict(config), rows)
    return list(rows)


TANGLED = {"latency": {"kind": "lognormal", "median": "5ms", "sigma": 1.0}}
"""A network on which `fifo` soon goes wrong."""


class Element(NamedTuple):
    tag: str
    classes: tuple[str, ...]
    attributes: dict[str, str]
    title: str
    text: str

    def number(self, name: str) -> float:
        return float(self.attributes[name])

    @property
    def centre(self) -> tuple[float, float]:
        if self.tag == "circle":
            return self.number("cx"), self.number("cy")
        return (
            self.number("x") + self.number("width") / 2,
            self.number("y") + self.number("height") / 2,
        )


class Drawing:
    """An SVG, taken apart; without its legend."""

    def __init__(self, svg: str) -> None:
        self.root = ET.fromstring(svg)
        self.elements: list[Element] = []
        self._collect(self.root)

    def _collect(self, parent: ET.Element) -> None:
        for child in parent:
            if child.get("class") == "legend":
                continue
            title = child.find(f"{SVG}title")
            self.elements.append(
                Element(
                    child.tag.removeprefix(SVG),
                    tuple((child.get("class") or "").split()),
                    dict(child.attrib),
                    "" if title is None else title.text or "",
                    child.text or "",
                )
            )
            self._collect(child)

    def of(self, kind: str, tag: str | None = None) -> list[Element]:
        return [e for e in self.elements if kind in e.classes and tag in (None, e.tag)]

    def legend(self) -> list[str]:
        (group,) = [g for g in self.root.iter(f"{SVG}g") if g.get("class") == "legend"]
        return [text.text or "" for text in group.iter(f"{SVG}text")]

    def mark(self, process: str, kind: str, message: str) -> Element:
        """The mark of a row, found by what is said where one points at it."""
        words = re.compile(rf"{re.escape(process)} {kind} {re.escape(message)}( |$)")
        (found,) = [e for e in self.of(kind) if words.match(e.title)]
        return found
