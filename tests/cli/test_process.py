"""The command line as a process: bytes, exit statuses, pipes, interrupts, missing packages."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

CAUSEWIRE = [sys.executable, "-m", "causewire"]

SESSION = """
import sys
from causewire.cli import main
for line in sys.stdin:
    main(line.split())
"""


def _session(directory: Path, hash_seed: str, commands: str) -> bytes:
    """Run commands in one new process; returns what they print."""
    directory.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", SESSION],
        input=commands.encode(),
        cwd=directory,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""
    return done.stdout


@pytest.mark.slow
def test_the_same_bytes_in_two_processes_with_different_hash_seeds(tmp_path: Path) -> None:
    commands = "protocols --json\n"
    for protocol, workload in (("csps", "relay"), ("ks", "groups"), ("bss", "broadcast")):
        run = f"simulate --protocol {protocol} --workload {workload} --processes 6 --messages 60"
        commands += f"{run} --seed 11 --jitter 40ms --trace {protocol}.parquet\n"
        commands += f"{run} --seed 11 --jitter 40ms --trace {protocol}.jsonl --json\n"
        commands += f"draw {protocol}.jsonl -o {protocol}.svg\n"
    commands += (
        "simulate --loss 0.2 --duplicate 0.2 --bandwidth 50kB/s --trace loss.jsonl\n"
        "simulate --protocol fifo --workload relay --messages 200 --trace bad.parquet\n"
        "check bad.parquet\n"
        "check bad.parquet --json\n"
        "draw bad.parquet --violation 1 -o bad.svg\n"
        "convert bad.parquet -o bad.log\n"
    )
    one, two = tmp_path / "one", tmp_path / "two"
    assert _session(one, "1", commands) == _session(two, "2", commands)
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in two.iterdir())
    assert len(names) == 9 + 4
    for name in names:
        assert (one / name).read_bytes() == (two / name).read_bytes(), name


@pytest.mark.slow
def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    """`causewire protocols --json | head -c 10`: no traceback, no complaint."""
    with subprocess.Popen(
        [*CAUSEWIRE, "protocols", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode in (0, 128 + signal.SIGPIPE)


@pytest.mark.slow
def test_a_terminal_that_knows_no_letters_but_ascii(tmp_path: Path) -> None:
    done = subprocess.run(
        [*CAUSEWIRE, "protocols"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"O(n?)" in done.stdout


@pytest.mark.slow
def test_an_interrupt_is_quiet_and_leaves_nothing(tmp_path: Path) -> None:
    command = ["simulate", "--messages", "100000000", "--processes", "50", "--trace", "run.jsonl"]
    with subprocess.Popen(
        [*CAUSEWIRE, *command], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        while not any(path.stat().st_size for path in tmp_path.iterdir()):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (130, b"", b"")
    assert list(tmp_path.iterdir()) == []


def _on_a_terminal(
    command: str, directory: Path, start: Sequence[str] = CAUSEWIRE, **environment: str
) -> tuple[int, str]:
    """Run a command whose standard output and error are a terminal; returns what it shows."""
    ours, its = pty.openpty()
    with subprocess.Popen(
        [*start, *command.split()],
        cwd=directory,
        stdout=its,
        stderr=its,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **environment},
    ) as process:
        os.close(its)
        shown = b""
        try:
            while some := os.read(ours, 4096):
                shown += some
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    return process.returncode, shown.decode().replace("\r\n", "\n")


LONG = "simulate --messages 60000 --processes 50 --trace run.jsonl"
PLAIN = "import sys; sys.modules['rich'] = None; from causewire.cli import main; sys.exit(main())"


@pytest.mark.slow
def test_progress_without_rich_is_a_line_that_is_erased(tmp_path: Path) -> None:
    status, shown = _on_a_terminal(LONG, tmp_path, [sys.executable, "-c", PLAIN])
    assert status == 0
    assert re.search(r"\r\x1b\[Ksimulating: [0-9,]+ of 60,000 messages sent  [0-9]+ %", shown)
    *_, last = shown.rpartition("\r\x1b[K")
    assert last.startswith("adaptive, uniform: 60,000 messages")


@pytest.mark.slow
def test_progress_is_a_bar_without_colour_if_that_is_wanted(tmp_path: Path) -> None:
    pytest.importorskip("rich")
    status, shown = _on_a_terminal(LONG, tmp_path, NO_COLOR="1")
    assert status == 0
    assert re.search("simulating .*[0-9,]+ of 60,000 messages sent .*left:", shown)
    assert not re.search(r"\x1b\[[0-9;]*3[0-9](;[0-9;]*)?m", shown), "no colour"
    *_, last = shown.rpartition("\x1b[2K")
    assert last.startswith("adaptive, uniform: 60,000 messages")


@pytest.mark.slow
def test_on_a_terminal_a_picture_goes_to_a_file(tmp_path: Path) -> None:
    assert _on_a_terminal("simulate --messages 9 --trace run.jsonl", tmp_path)[0] == 0
    status, shown = _on_a_terminal("draw run.jsonl", tmp_path)
    assert status == 0
    assert shown.startswith("run.svg: ")
    assert (tmp_path / "run.svg").read_text().startswith("<?xml")


WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pyarrow", "numpy", "numba", "pyspark", "cryptography"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
from causewire.cli import main
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "status", "out", "err"),
    [
        ("protocols mf", 0, "mf: one message at a time", ""),
        ("simulate --messages 9 --trace run.jsonl", 0, "adaptive, uniform: 9 messages", ""),
        ("draw run.jsonl", 0, "<?xml", ""),
        ("convert run.jsonl -o run.shiviz", 0, "run.shiviz: 18 rows", ""),
        (
            "simulate --trace run.parquet",
            2,
            "",
            'pip install "causewire[trace]"\n',
        ),
        ("check run.jsonl", 2, "", 'pip install "causewire[trace]"\n'),
        ("check run.jsonl --engine spark", 2, "", 'pip install "causewire[trace]"\n'),
    ],
)
def test_without_the_extras(command: str, status: int, out: str, err: str, tmp_path: Path) -> None:
    """The light install does what it can, and says in one line what it cannot."""
    made = "simulate --messages 9 --trace run.jsonl"
    for line in (made, command):
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT, *line.split()],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == status, done.stderr
    assert done.stdout.startswith(out)
    assert done.stderr.endswith(err)
    assert done.stderr.count("\n") == (1 if status else 0)
    assert not list(tmp_path.glob("*.parquet"))


@pytest.mark.slow
def test_without_spark(tmp_path: Path) -> None:
    without = WITHOUT.replace(
        '{"pyarrow", "numpy", "numba", "pyspark", "cryptography"}', '{"pyspark"}'
    )
    (tmp_path / "run.jsonl").write_text("\n")
    done = subprocess.run(
        [sys.executable, "-c", without, "check", "run.jsonl", "--engine", "spark"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("causewire check: ")
    assert "causewire[spark]" in done.stderr
    assert done.stderr.count("\n") == 1
