"""Plain words: phrases that once made the project hard to read do not come back.

Each pattern below was in docstrings, messages or pages, and a newcomer stumbled over it. The
table says what to write instead. Text is searched as it stands: code, comments, docstrings,
messages, help and pages.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

INSTEAD: dict[str, str] = {
    r"\bwhither\b": "to which address, destination",
    r"\bwhence\b|\bthence\b|\bhither\b": "from where, from there",
    r"\bof ours\b": "of Causewire, of this package",
    r"\b(?:is|are|was|were|be) told\b(?! apart| from)": "receives, learns, gets an event",
    r"\btold of\b": "described, reported",
    r"\bso many\b": "that many, N, the given number of",
    r"\bbeside\b": "next to, in addition to, compared with",
    r"\bbears\b|\bto bear\b|\bcan bear\b|\bmust bear\b": "tolerates, carries",
    r"\bbearable\b": "admissible, within the limit",
    r"\bhas none\b|\bhave none\b": "has no X",
    r"(?-i:\bthat is none\b|\bthat are none\b)": "that is not one; name it",
    r"\bby himself\b": "automatically",
    r"\bhas been met\b": "a peer has a newer one",
    r"\blast words\b": "messages still in flight",
    r"\bgood for nothing\b": "has no effect",
    r"\bthat (?:this|the) [a-z]+ has not(?= *[\"'.,;:])": "unexpected X",
    r"\bnever enough\b": "a sentinel below every number",
    r"\bcame of it\b|\bcomes of it\b": "the result",
    r"\bcan be had\b": "is available",
    r"\bof a former incarnation\b": "stale_incarnation",
    r"\bnobody'?s business\b": "private",
    r"\bmakes no sense\b": "is malformed, is inconsistent",
    r"\bhave a look at\b": "inspect",
    r"\bgoes its own way\b": "is independent",
}
PATTERN = re.compile("|".join(f"(?:{pattern})" for pattern in INSTEAD), re.IGNORECASE)


def texts() -> list[Path]:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted([*pages, *(ROOT / "src").rglob("*.py"), *(ROOT / "examples").rglob("*.py")])


def found(text: str) -> list[str]:
    return [match[0] for match in PATTERN.finditer(text)]


@pytest.mark.parametrize("path", texts(), ids=lambda path: str(path.relative_to(ROOT)))
def test_plain_words(path: Path) -> None:
    phrases = found(path.read_text(encoding="utf-8"))
    assert not phrases, f"{sorted(set(phrases))}: see the table in tests/test_words.py"


def test_every_pattern_finds_what_it_is_for() -> None:
    for pattern in INSTEAD:
        assert re.compile(pattern)
    assert found("what to send, and whither") == ["whither"]
    assert found("a message that is told of") == ["is told"]
    assert found("plain words, in a plain sentence") == []
