"""`CAUSEWIRE_PURE=1`: import the sources of modules that are installed compiled as well."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from types import ModuleType

__all__ = ["prefer_sources"]


class _SourceFinder(MetaPathFinder):
    """Finds the modules of a package as Python files, before anybody looks for compiled ones."""

    def __init__(self, package: str) -> None:
        self._prefix = package + "."

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to import a module from its source; None for other packages."""
        if not fullname.startswith(self._prefix):
            return None
        for directory in path or ():
            file = os.path.join(directory, fullname.rpartition(".")[2] + ".py")
            if os.path.isfile(file):
                return spec_from_file_location(fullname, file)
        return None


def prefer_sources() -> None:
    """Import core, transport and node from their sources if the environment says so."""
    if os.environ.get("CAUSEWIRE_PURE") == "1":
        for package in ("causewire.core", "causewire.transport", "causewire.node"):
            sys.meta_path.insert(0, _SourceFinder(package))
