"""The compiled build: transport and parts of core and node as machine code, from the sources.

    CAUSEWIRE_COMPILE=1 pip install .       a wheel with compiled modules
    python hatch_build.py out/compiled      a copy of the package, compiled, for tests

Without `CAUSEWIRE_COMPILE=1` nothing is compiled, and no compiler is needed. The compiled
modules lie next to their sources, which are installed as well: `CAUSEWIRE_PURE=1` makes Python
import those (`causewire/_source.py`).

Two compilers are used. mypyc makes fast code of classes whose types are declared, but it takes no
class that derives from `tuple` (packets), is copied with `object.__new__` or changes its class
(endpoints). Cython takes every module as it is, and leaves classes what they are; attributes
then cost more than in CPython's interpreter, which remembers where it found them the last time. So
Cython is used where a measurement says that it pays, and other protocols are not compiled: `csps`,
`sps` and `fifo` would be slower (docs/measurements/latency.md, "Compiled protocols").
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

MYPYC = [
    "core/adaptive_past",
    "node/bridge",
    "node/store_bridge",
    "node/waiting",
    "transport/acceptance",
    "transport/account",
    "transport/arrivals",
    "transport/budget",
    "transport/congestion",
    "transport/contents",
    "transport/cubic",
    "transport/frames",
    "transport/greeter",
    "transport/heads",
    "transport/inbound",
    "transport/ledger",
    "transport/newreno",
    "transport/outbound",
    "transport/patience",
    "transport/path_size",
    "transport/paths",
    "transport/peers",
    "transport/pump",
    "transport/received",
    "transport/recovery",
    "transport/seal",
    "transport/session",
    "transport/stats",
    "transport/timers",
    "transport/transport",
    "transport/unread",
    "transport/upkeep",
    "transport/varint",
    "transport/withdrawals",
]
"""The modules that mypyc compiles: all that datagrams pass through, and what `adaptive` knows.

They are one group, so functions of one module call those of another directly.

`transport/carrier` is not compiled, so that classes in Python can derive from `Carrier`; and for
modules that are used once in a while it would not matter."""

CYTHON = ["core/cykas", "core/ks"]
"""The modules that Cython compiles. Annotations are not taken for declarations: what happens with
arguments of other types is part of the contract of an endpoint."""

MODULES = [*MYPYC, *CYTHON]


def compile_in(source: Path) -> list[Path]:
    """Compile modules of the package in a directory, and return the files that were made.

    Args:
        source: The directory that has the package `causewire` in it.

    Raises:
        RuntimeError: Some module has no compiled file that this Python would import.
    """
    for modules, command, options in (
        (MYPYC, "mypyc", ["--ignore-missing-imports", "--follow-imports=silent"]),
        (CYTHON, "Cython.Build.Cythonize", ["-3", "-i", "-q", "-X", "annotation_typing=False"]),
    ):
        files = [f"causewire/{module}.py" for module in modules]
        subprocess.run(
            [sys.executable, "-m", command, *options, *files],
            cwd=source,
            env={
                "CFLAGS": "-g0",
                **os.environ,
                "MYPYPATH": "",
                "MYPY_CACHE_DIR": str(source / ".mypy_cache"),
            },
            check=True,
        )
    for module in CYTHON:
        (source / "causewire" / f"{module}.c").unlink(missing_ok=True)
    shutil.rmtree(source / "build", ignore_errors=True)
    shutil.rmtree(source / ".mypy_cache", ignore_errors=True)
    if lacking := not_compiled(source):
        raise RuntimeError(f"not compiled: {', '.join(lacking)}")
    return [path for end in ("*.so", "*.pyd") for path in sorted(source.rglob(end))]


def not_compiled(source: Path) -> list[str]:
    """Return the modules that this Python would import from their sources in a directory."""
    return [
        module
        for module in MODULES
        if not any(
            (source / "causewire" / f"{module}{suffix}").exists() for suffix in EXTENSION_SUFFIXES
        )
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
        return ["cython>=3.1", "mypy[mypyc]>=1.18", "setuptools"] if self._wanted() else []

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
    print(f"{len(MODULES)} compiled modules in {sys.argv[1]}")
