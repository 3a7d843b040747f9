"""The figure of the first page: one conversation, without causal order and with it.

The simulator says when messages leave, arrive and are read; this draws that with few and large
words, because a reader has five seconds, perhaps on a phone.
"""

from __future__ import annotations

from collections.abc import Sequence

from causewire.trace import DELIVER, RECEIVE, SEND, Event

__all__ = ["first_figure"]

_WORDS = {"ann:1": "“Seen my ring?”", "bob:1": "“I found it!”"}
_LINES = {"ann": 78, "bob": 148, "cy": 218}
_LEFT, _RIGHT, _BOTTOM = 62, 344, 300
_LONGEST = 42e6
"""Nanoseconds from one edge to the other."""

_RED, _GREEN, _BLUE, _INK, _QUIET = "#b01217", "#0b6b3f", "#1f6fb2", "#1b212c", "#6b7483"

_STYLE = f"""
text {{ font: 15px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: {_INK}; }}
.title {{ font-weight: 700; font-size: 17px; }} .who {{ font-weight: 650; }} .small {{ font-size: 13px; }}
.line {{ stroke: #b4bcc8; stroke-width: 2; }} .message {{ stroke: {_INK}; stroke-width: 2; }}
.aside {{ stroke: #c3c9d2; stroke-width: 1.5; }} .held {{ stroke: {_BLUE}; stroke-width: 7; }}
.bad {{ stroke: {_RED}; }} text.bad {{ stroke: none; fill: {_RED}; }} text.good {{ fill: {_GREEN}; }}
text.wait {{ fill: {_BLUE}; }} text.quiet {{ fill: {_QUIET}; }}
"""  # noqa: E501


def _x(event: Event) -> float:
    return _LEFT + (_RIGHT - _LEFT) * (event.time_ns or 0) / _LONGEST


def first_figure(events: Sequence[Event]) -> str:
    """Return the events of the conversation as SVG; ann asks, bob answers, cy reads both."""

    def at(kind: str, who: str, what: str) -> Event:
        return next(
            e for e in events if (e.kind, e.process, f"{e.origin}:{e.mid}") == (kind, who, what)
        )

    read = [event for event in events if event.kind == DELIVER and event.process == "cy"]
    order = [f"{event.origin}:{event.mid}" for event in read]
    broken = order[0] == "bob:1"
    title = "✗ Without causal order" if broken else "✓ With causal order"
    parts = [_text(8, 26, title, f"title {'bad' if broken else 'good'}")]
    for name, y in _LINES.items():
        parts.append(_text(8, y + 5, name.capitalize(), "who"))
        parts.append(_line("line", _LEFT - 8, y, _RIGHT + 8, y))
    for what, who, to in (
        ("bob:1", "bob", "ann"),
        ("ann:1", "ann", "bob"),
        ("bob:1", "bob", "cy"),
        ("ann:1", "ann", "cy"),
    ):
        begin, end = at(SEND, who, what), at(RECEIVE, to, what)
        bad = " bad" if broken and to == "cy" else ""
        kind = "aside" if to == "ann" else f"message{bad}"
        parts.append(_arrow(kind, _x(begin), _LINES[who], _x(end), _LINES[to]))
    bob, cy = _LINES["bob"], _LINES["cy"]
    early, late = _x(at(RECEIVE, "cy", "bob:1")), _x(read[-1])
    answered = _x(at(SEND, "bob", "bob:1")) - 4
    first, second = (_WORDS[what] for what in order)
    kind = "bad" if broken else ""
    parts += [
        _text(_LEFT + 2, _LINES["ann"] - 12, _WORDS["ann:1"]),
        _text(answered, bob + 21, _WORDS["bob:1"], "end"),
        _text(_RIGHT + 4, bob - 8, "a slow link", "small quiet end"),
        _text(8, _BOTTOM - 34, "Cy reads", "who"),
        _text(92, _BOTTOM - 34, f"1. {first}", kind),
        _text(92, _BOTTOM - 12, f"2. {second}", kind),
    ]
    if broken:
        parts.append(_text(_RIGHT + 8, _BOTTOM - 34, "found what?", "small quiet end"))
    else:
        parts.append(_line("held", early, cy, late, cy))
        parts.append(_text((early + late) / 2, cy + 22, "the answer waits", "small wait middle"))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 360 {_BOTTOM}" role="img">'
        f"<title>{title[2:]}</title>\n<style>{_STYLE}</style>\n"
        f'<rect width="360" height="{_BOTTOM}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    anchor = next((word for word in ("end", "middle") if word in kind.split()), "start")
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _arrow(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    """Return a line that ends in a head."""
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    fill = _RED if "bad" in kind else "#c3c9d2" if kind == "aside" else _INK
    back = (x2 - 10 * dx, y2 - 10 * dy)
    corners = [(x2, y2), (back[0] - 5 * dy, back[1] + 5 * dx), (back[0] + 5 * dy, back[1] - 5 * dx)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    return f'{_line(kind, x1, y1, *back)}<polygon points="{points}" fill="{fill}"/>'
