"""The compiled build: the transport as machine code, made by mypyc from the same sources.

    CAUSEWIRE_COMPILE=1 pip install .       a wheel with compiled modules
    python hatch_build.py out/compiled      a copy of the package, compiled, for tests

Without `CAUSEWIRE_COMPILE=1` nothing is compiled, and no compiler is needed. The compiled
modules lie next to their sources, which are installed as well: `CAUSEWIRE_PURE=1` makes Python
import those (`causewire/_source.py`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # `python hatch_build.py` does not need it
    BuildHookInterface = object  # type: ignore[assignment, misc]

MODULES = [
    "acceptance",
    "arrivals",
    "budget",
    "congestion",
    "cubic",
    "frames",
    "greeter",
    "heads",
    "inbound",
    "ledger",
    "newreno",
    "outbound",
    "paths",
    "peers",
    "pump",
    "received",
    "recovery",
    "seal",
    "session",
    "stats",
    "timers",
    "transport",
    "upkeep",
    "varint",
]
"""The modules of `causewire.transport` that are compiled: all that datagrams pass through.

Modules with classes that derive from built-in types (`accepted`, `names`) cannot be compiled.
`carrier` is not, so that classes in Python can derive from `Carrier`; and for modules that are
used once in a while it would not matter."""


def compile_in(source: Path) -> list[Path]:
    """Compile modules of the package in a directory, and return the files that were made.

    Args:
        source: The directory that has the package `causewire` in it.

    Raises:
        RuntimeError: Some module has no compiled file that this Python would import.
    """
    files = [f"causewire/transport/{name}.py" for name in MODULES]
    options = ["--ignore-missing-imports", "--follow-imports=silent"]
    environment = {**os.environ, "MYPYPATH": "", "MYPY_CACHE_DIR": str(source / ".mypy_cache")}
    command = [sys.executable, "-m", "mypyc", *options, *files]
    subprocess.run(command, cwd=source, env=environment, check=True)
    shutil.rmtree(source / "build", ignore_errors=True)
    shutil.rmtree(source / ".mypy_cache", ignore_errors=True)
    if lacking := not_compiled(source):
        raise RuntimeError(f"not compiled: {', '.join(lacking)}")
    return [path for end in ("*.so", "*.pyd") for path in sorted(source.rglob(end))]


def not_compiled(source: Path) -> list[str]:
    """Return the modules that this Python would import from their sources in a directory."""
    folder = source / "causewire" / "transport"
    return [
        name
        for name in MODULES
        if not any((folder / f"{name}{suffix}").exists() for suffix in EXTENSION_SUFFIXES)
    ]


def compile_copy(root: Path, target: Path) -> list[Path]:
    """Copy the package to a directory, compile it there, and return the files that were made.

    The directory has its name only when everything is compiled. Until then, and if the
    compiler fails, Python would import the copied sources, and nobody would notice.
    """
    shutil.rmtree(target, ignore_errors=True)
    unfinished = target.with_name(f"{target.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    nothing = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
    shutil.copytree(root / "src" / "causewire", unfinished / "causewire", ignore=nothing)
    made = compile_in(unfinished)
    unfinished.rename(target)
    return [target / path.relative_to(unfinished) for path in made]


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds compiled modules to a wheel if `CAUSEWIRE_COMPILE=1`."""

    _copy: TemporaryDirectory[str] | None = None

    def _wanted(self) -> bool:
        return self.target_name == "wheel" and os.environ.get("CAUSEWIRE_COMPILE") == "1"

    def dependencies(self) -> list[str]:
        """Return what the build needs in addition to its backend."""
        return ["mypy[mypyc]>=1.18", "setuptools"] if self._wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and name the files for the wheel."""
        if not self._wanted() or version == "editable":
            return
        self._copy = TemporaryDirectory()
        target = Path(self._copy.name) / "package"
        for path in compile_copy(Path(self.root), target):
            build_data["force_include"][str(path)] = str(path.relative_to(target))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what is in the wheel by now."""
        if self._copy is not None:
            self._copy.cleanup()


if __name__ == "__main__":
    made = compile_copy(Path(__file__).resolve().parent, Path(sys.argv[1]).resolve())
    print(f"{len(made)} compiled modules in {sys.argv[1]}")
