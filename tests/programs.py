"""Programs of the project that are no modules of a package, loaded for their tests."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def load(program: str) -> Any:
    """Return the program at a path below the root of the project, as a new module."""
    name = "program_" + program.removesuffix(".py").replace("/", "_")
    spec = spec_from_file_location(name, ROOT / program)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # data classes look themselves up there
    spec.loader.exec_module(module)
    return module
