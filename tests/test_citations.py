"""Every citation of an erratum or a case resolves to an entry of docs/errata.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
ENTRIES = set(re.findall(r'<a id="errata-([0-9.]+)"></a>', PAGE))

# A citation may go on on the next line of a comment, and may name several entries:
# "ERRATA 2.2, 2.3", "ERRATA 1 and 3", "ERRATA 5 to 8".
NUMBER = r"[0-9]+(?:\.[0-9]+)?"
CITATION = re.compile(rf"\bERRATA[\s#]+({NUMBER}(?:(?:,|,? and| to)[\s#]+{NUMBER}(?![0-9]))*)")
FOLDERS = ("src", "tests", "docs", "benchmarks", "campaigns", "examples", "experiments")


def files() -> Iterator[Path]:
    yield from ROOT.glob("*.md")
    for folder in FOLDERS:
        for suffix in ("*.py", "*.md", "*.toml"):
            yield from (ROOT / folder).rglob(suffix)


def citations(text: str) -> list[str]:
    return [number for found in CITATION.findall(text) for number in re.findall(NUMBER, found)]


CITED = [
    pytest.param(number, id=f"{path.relative_to(ROOT)}-{number}")
    for path in files()
    if path != Path(__file__)
    for number in sorted(set(citations(path.read_text(encoding="utf-8"))))
]


def test_the_pattern_finds_every_form_of_citation() -> None:
    assert citations("(ERRATA 2.2, 2.3), and (ERRATA 5 to 8)") == ["2.2", "2.3", "5", "8"]
    assert citations("as in ERRATA\n    # 5.2).") == ["5.2"]
    assert citations("ERRATA 8.4, line 33") == ["8.4"]
    assert citations("the errata") == []


@pytest.mark.parametrize("number", CITED)
def test_citation_resolves(number: str) -> None:
    assert number in ENTRIES


def test_there_are_citations_to_resolve() -> None:
    assert len(CITED) > 60
    assert {"1", "2.11", "5.2", "8.5", "9"} <= ENTRIES


def test_every_case_is_described_by_an_erratum() -> None:
    cases = {path.stem for path in (ROOT / "tests" / "core" / "cases").glob("*.json")}
    named = set(re.findall(r"`([a-z0-9]+_[a-z0-9_]+)`", PAGE))
    assert cases
    assert cases - named == set(), "cases that docs/errata.md does not name"
    assert {name for name in named if name.split("_")[0] in {"alg1", "alg2", "alg3"}} <= cases


def test_links_in_the_page_resolve() -> None:
    linked = set(re.findall(r"\]\(#errata-([0-9.]+)\)", PAGE))
    assert linked
    assert linked <= ENTRIES


def test_links_in_other_pages_resolve() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        for number in re.findall(r"errata\.md#errata-([0-9.]+)\)", page.read_text("utf-8")):
            assert number in ENTRIES, f"{page.name}: ERRATA {number}"
