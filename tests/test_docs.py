"""The examples in the documentation run, and links between pages lead somewhere."""

from __future__ import annotations

import dataclasses
import inspect
import re
import shlex
from pathlib import Path

import pytest

from causewire import node
from causewire.cli import main

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
EXAMPLES = [
    pytest.param(code, id=f"{page.name}-{n}")
    for page in PAGES
    for n, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL))
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_example(code: str) -> None:
    exec(compile(code, "example", "exec"), {})  # what it says of itself, it asserts


def test_pages_have_examples() -> None:
    with_examples = {str(example.id).partition(".md")[0] for example in EXAMPLES}
    assert with_examples >= {
        *("README", "tutorial", "core", "write-a-protocol", "node", "failures"),
        *("simulation", "testing", "traces", "verification"),
    }


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "tutorial.md"], ids=lambda p: p.name)
@pytest.mark.slow
def test_commands(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of these pages run; only those that show a violation have status 1."""
    monkeypatch.chdir(tmp_path)
    status = {}
    for block in re.findall(r"```console\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        for command in re.findall(r"^\$ causewire (.*)$", block, re.MULTILINE):
            status[command] = main(shlex.split(command))
    assert len(status) >= 3
    assert set(status.values()) <= {0, 1}
    for command, result in status.items():
        finds = command.startswith(("check", "verify")) and "csps" not in command
        assert result == int(finds), command


def anchors(page: Path) -> set[str]:
    """The places in a page that a link can lead to: headings, as mkdocs names them, and ids."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    found = set(re.findall(r'<a id="([^"]+)"', text))
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower()
        found.add(re.sub(r"[\s-]+", "-", plain))
    return found


LINKS = [
    pytest.param(page, target, id=f"{page.relative_to(ROOT)}->{target}")
    for page in PAGES
    for target in re.findall(
        r"\]\(([^)\s]+)\)",
        re.sub(r"```.*?```|`[^`]*`", "", page.read_text("utf-8"), flags=re.DOTALL),
    )
    if not re.match(r"[a-z]+:", target)
]


@pytest.mark.parametrize(("page", "target"), LINKS)
def test_link(page: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    assert file.exists(), f"{path} does not exist"
    if anchor:
        assert anchor in anchors(file), f"{file.name} has no heading for #{anchor}"


def test_the_reference_of_the_node_is_complete() -> None:
    """Every argument, limit, event and error is on the page, and no limit that is gone."""
    page = (DOCS / "node.md").read_text("utf-8")
    arguments = set(inspect.signature(node.Node.__init__).parameters) - {"self"}
    limits = {field.name for field in dataclasses.fields(node.TransportConfig)}
    exported = {name for name in node.__all__ if name[0].isupper()} - {"Config", "Event", "Reason"}
    for name in sorted(arguments | limits | exported):
        assert re.search(rf"`(?:causewire\.node\.)?{name}\b", page), f"docs/node.md lacks {name}"
    table = page.partition("## Limits")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?`) \|", table, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == limits


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    for page in DOCS.rglob("*.md"):
        assert f": {page.relative_to(DOCS)}" in navigation, f"{page.name} is not in mkdocs.yml"
