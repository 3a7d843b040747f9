"""Every public callable says what the caller gets, and which of our errors it raises."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Iterator
from types import FunctionType, ModuleType

import causewire
from causewire import CausewireError

PACKAGES = (
    *("core", "protocols", "node", "kit", "blocking", "transport", "trace", "check"),
    *("sim", "verify", "pipeline", "report", "testing"),
)
"""The command line is documented by its own help texts."""

EXEMPT = {"causewire.transport.transport:Transport.datagram_received Raises"}
"""It handles the error that it raises."""


def modules() -> Iterator[ModuleType]:
    for name in PACKAGES:
        module = importlib.import_module(f"causewire.{name}")
        yield module
        if hasattr(module, "__path__"):
            for found in pkgutil.walk_packages(module.__path__, f"{module.__name__}."):
                parts = found.name.split(".")
                if not any(part.startswith("_") for part in parts):
                    yield importlib.import_module(found.name)


def callables(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Yield the public functions, classes and methods that `module` defines itself."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value):
            yield name, value
            for member, attribute in vars(value).items():
                function = unwrapped(attribute)
                if not member.startswith("_") and function is not None:
                    yield f"{name}.{member}", (value, member, function)
        elif inspect.isfunction(value) and "<locals>" not in value.__qualname__:
            yield name, value  # what another function made is documented there


def unwrapped(attribute: object) -> FunctionType | None:
    if isinstance(attribute, property):
        attribute = attribute.fget
    if isinstance(attribute, classmethod | staticmethod):
        attribute = attribute.__func__
    return attribute if isinstance(attribute, FunctionType) else None


def documentation(value: object) -> str:
    if isinstance(value, tuple):
        cls, member, _ = value
        return inspect.getdoc(getattr(cls, member)) or ""  # an inherited one counts
    if inspect.isclass(value):
        own = value.__doc__ or ""
        return "" if own.startswith(f"{value.__name__}(") else own  # a dataclass's default
    return inspect.getdoc(value) or ""


def errors_raised(value: object) -> set[str]:
    """Return the names of our exceptions that the function raises itself."""
    function = value[2] if isinstance(value, tuple) else value
    if not inspect.isfunction(function):
        return set()
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return set()
    tree = ast.parse(textwrap.dedent(source))
    known = {**vars(importlib.import_module(function.__module__)), **function.__globals__}
    raised = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            cls = known.get(made.id) if isinstance(made, ast.Name) else None
            if inspect.isclass(cls) and issubclass(cls, CausewireError):
                raised.add(cls.__name__)
    return raised


def lacking() -> Iterator[str]:
    for module in modules():
        for name, value in callables(module):
            text = documentation(value)
            if not text:
                yield f"{module.__name__}:{name}"
            elif errors_raised(value) and "Raises:" not in text:
                yield f"{module.__name__}:{name} Raises"


def test_public_callables_have_docstrings() -> None:
    new = sorted(set(lacking()) - EXEMPT)
    assert not new, f"{len(new)} without a docstring, or without `Raises:`: {new[:20]}"


def test_the_test_sees_the_public_callables() -> None:
    seen = {f"{module.__name__}:{name}" for module in modules() for name, _ in callables(module)}
    assert len(seen) > 700
    assert "causewire.core.endpoint:Endpoint.send" in seen
    assert causewire.Node.__name__ in {name.partition(":")[2] for name in seen}
    assert errors_raised(importlib.import_module("causewire.trace.reader").open_trace) is not None


def misuse(name: str) -> None:
    """Raise an error of this package, for the test below."""
    raise causewire.LocalProtocolError(name)


def test_the_test_sees_what_is_raised() -> None:
    assert errors_raised(misuse) == set()  # not by a bare name
    raising = {
        name for module in modules() for name, value in callables(module) if errors_raised(value)
    }
    assert len(raising) > 30
