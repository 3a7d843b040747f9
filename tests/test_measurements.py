"""Pages with measurements say what was run, when and where; the recorder writes them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from campaigns import record

PAGES = sorted(path for path in record.FOLDER.glob("*.md") if path.stem != "index")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_has_one_block_with_date_machine_and_commands(path: Path) -> None:
    (recorded,) = record.BLOCK.findall(path.read_text(encoding="utf-8"))
    assert re.search(
        r"Measured on \d{4}-\d\d-\d\d, at commit [0-9a-f]{7,}, on .+\.\n|Not measured yet\.",
        recorded,
    )
    commands = re.findall(r"^\$ python (.+)$", recorded, re.MULTILINE)
    assert [command.split(" --")[0] for command in commands] == [
        command.split(" --")[0] for command in record.COMMANDS[path.stem]
    ]


def test_what_was_printed_before_a_failure_is_kept(tmp_path: Path) -> None:
    kept = tmp_path / "out" / "x.txt"
    code = "import sys; print('12 us', flush=True); sys.exit({})"
    assert record.output_of(f'-c "{code.format(1)}"', kept) == "12 us\n"
    with pytest.raises(SystemExit, match="exit status 3"):
        record.output_of(f'-c "{code.format(3)}"', kept)
    assert kept.read_text() == "12 us\n"


def test_every_page_of_the_recorder_exists() -> None:
    assert {path.stem for path in PAGES} == set(record.COMMANDS)
    for commands in record.COMMANDS.values():
        for command in commands:
            program = command.removeprefix("-m ").split()[0]
            file = program if program.endswith(".py") else program.replace(".", "/") + ".py"
            assert (record.ROOT / file).is_file(), command


def test_a_block_is_replaced_and_the_text_around_it_stays() -> None:
    page = f"# Title\n\n{record.BEGIN}\nold\n{record.END}\n\nnotes\n"
    new = record.block([("x.py --n 3", "1 us\n")], "2026-01-02", "a machine", "abcdef0")
    text = record.replaced(page, new)
    assert text.startswith("# Title\n")
    assert text.endswith("notes\n")
    assert "old" not in text
    assert "Measured on 2026-01-02, at commit abcdef0, on a machine." in text
    assert "$ python x.py --n 3" in text
    assert "```text\n1 us\n```" in text
    table = record.block([("x.py", "| a |\n| --- |\n")], "2026-01-02", "a machine", "abcdef0")
    assert "\n| a |\n| --- |\n" in table
    with pytest.raises(ValueError, match="found 0"):
        record.replaced("# Title\n", new)


def test_the_machine_is_described() -> None:
    assert re.search(r", \d+ cores, \w+, \w+ 3\.\d+", record.machine())


NUMBERS = re.compile(
    r"\d[\d,.]*\s*(?:µs|microseconds|nanoseconds|(?:messages|events) (?:a|per) second)"
)


def test_numbers_about_speed_are_on_these_pages_only() -> None:
    elsewhere = ("index", "design", "tutorial", "protocols", "node", "core", "simulation", "traces")
    for page in elsewhere:
        path = record.ROOT / "docs" / f"{page}.md"
        found = NUMBERS.findall(path.read_text(encoding="utf-8")) if path.exists() else []
        assert not found, f"{path.name}: {found}"
    assert NUMBERS.search("1.5 µs")
