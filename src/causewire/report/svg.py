"""A small SVG writer: elements, escaping, and numbers that are the same everywhere."""

from __future__ import annotations

from html import escape

__all__ = ["Svg", "number", "text_width"]

_NARROW = frozenset("ijlI.,:;|!'()[]{}/\\t f-r")
_WIDE = frozenset("mwMW@%—…")


def number(value: float) -> str:
    """Return a coordinate with one decimal, or with none if it is whole."""
    return f"{value:.1f}".removesuffix(".0")


def text_width(text: str, size: float) -> float:
    """Return an upper estimate of the width of a sans-serif text."""
    ems = sum(0.34 if c in _NARROW else 0.92 if c in _WIDE else 0.61 for c in text)
    return ems * size


class Svg:
    """An SVG document that grows element by element."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(
        self,
        tag: str,
        attributes: dict[str, str | float],
        *,
        text: str = "",
        title: str = "",
    ) -> None:
        """Add one element with its text, or with a title that is shown as a tooltip."""
        inside = (f"<title>{escape(title, quote=False)}</title>" if title else "") + escape(
            text, quote=False
        )
        head = f"<{tag}{_attributes(attributes)}"
        self.lines.append(f"{head}>{inside}</{tag}>" if inside else f"{head}/>")

    def open(self, tag: str, attributes: dict[str, str | float]) -> None:
        """Begin an element that holds others."""
        self.lines.append(f"<{tag}{_attributes(attributes)}>")

    def close(self, tag: str) -> None:
        """End an element."""
        self.lines.append(f"</{tag}>")

    def raw(self, markup: str) -> None:
        """Add markup without escaping it, such as a style sheet."""
        self.lines.append(markup)

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"


def _attributes(attributes: dict[str, str | float]) -> str:
    return "".join(
        f' {name}="{escape(value) if isinstance(value, str) else number(value)}"'
        for name, value in attributes.items()
    )
