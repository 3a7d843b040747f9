"""The compiled build is there as a whole or not at all, and says what it consists of."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest

from .programs import ROOT, load


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The build program as a module; its compiler makes empty files, as many as one says."""
    module = load("hatch_build.py")

    def compiler(command: list[str], *, cwd: Path, **_: object) -> None:
        for file in [word for word in command if word.endswith(".py")][: module.left_out or None]:
            stem = file.removesuffix(".py")
            cwd.joinpath(stem + EXTENSION_SUFFIXES[0]).touch()
            if "Cython" in command[2]:
                cwd.joinpath(stem + ".c").touch()

    module.left_out = 0
    monkeypatch.setattr(module.subprocess, "run", compiler)
    return module


@pytest.fixture
def root(tmp_path: Path, build: Any) -> Path:
    """A checkout whose modules are empty."""
    for module in build.MODULES:
        file = tmp_path / "src" / "causewire" / f"{module}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return tmp_path


def test_a_build_takes_its_name_when_it_is_whole(build: Any, root: Path) -> None:
    target = root / "out"
    made = build.compile_copy(root, target)
    assert len(made) == len(build.MODULES)
    assert all(path.is_file() for path in made)
    assert build.not_compiled(target) == []
    assert not list(target.rglob("*.c"))
    assert sorted(path.name for path in root.iterdir()) == ["out", "src"]


def test_a_build_that_fails_leaves_nothing_that_could_be_imported(build: Any, root: Path) -> None:
    target = root / "out"
    build.compile_copy(root, target)
    build.left_out = -1
    with pytest.raises(RuntimeError, match=f"not compiled: {build.MYPYC[-1]}, {build.CYTHON[-1]}$"):
        build.compile_copy(root, target)
    assert not target.exists()


def test_files_for_another_python_do_not_count(build: Any, root: Path) -> None:
    build.compile_copy(root, root / "out")
    (made,) = (root / "out").rglob(f"session{EXTENSION_SUFFIXES[0]}")
    made.rename(made.with_name("session.cpython-30-other.so"))
    assert build.not_compiled(root / "out") == ["transport/session"]


def test_every_module_of_the_list_exists(build: Any) -> None:
    folder = ROOT / "src" / "causewire"
    assert [name for name in build.MODULES if not (folder / f"{name}.py").is_file()] == []
