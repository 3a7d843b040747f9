"""The examples of docs/cli.md run, and print what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .command_line import CommandLine

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()


@pytest.mark.slow
def test_the_examples_of_the_page(
    causewire: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (story,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "story.jsonl").write_text(story)
    ran = 0
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = example.partition("\n")
            status, out, err = causewire(command.removeprefix("causewire "))
            assert status in (0, 1), f"{command}: {err}"
            assert err == "", command
            if shown:
                assert out == shown, command
            ran += 1
    assert ran > 15
    verdicts = [causewire("check", name).status for name in ("run.parquet", "again.parquet")]
    assert verdicts == [1, 0]


def test_every_argument_of_simulate_is_on_the_page(causewire: CommandLine) -> None:
    flags = set(re.findall(r"--[a-z]+", causewire("simulate --help").out)) - {"--help"}
    assert all(flag in PAGE for flag in flags)
