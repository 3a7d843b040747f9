"""Settings: frozen dataclasses that come from code or from a plain dict.

Everything about a run is data, and the same data may be written in Python or in
an experiment file. Each field names the function that reads it, and the reader
takes either form: `Network(latency=Constant(5_000_000))` and
`{"latency": "5ms"}` end up the same. A reader checks as well, so there is one
place for each rule, and whatever exists is valid.

    duration    "5ms", "1.5s", "250us", "10ns", "2min"; in Python also an integer, which
                is nanoseconds. A file has to give the unit
    data_size   bytes, or "4kB", "1MB", "64KiB"
    data_rate   bytes a second, or "50kB/s", "1MB/s", "10Mbit/s"

A setting that is wrong raises `SimulationError` with one line that names it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Self, TypeVar

from ..durations import DurationError, format_duration, parse_duration
from .errors import SimulationError

__all__ = [
    "Settings",
    "by",
    "choice",
    "data_rate",
    "data_size",
    "duration",
    "flag",
    "fraction",
    "integer",
    "many",
    "number",
    "one_of",
    "optional",
    "optional_duration",
    "text",
]

T = TypeVar("T")
Reader = Callable[[Any, str], T]
"""Takes a value in any accepted form and what to call it; returns it checked."""


def by(read: Reader[Any]) -> dict[str, Any]:
    """Return the metadata of a field of `Settings`: the function that reads its value."""
    return {"read": read}


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """Base class of all settings; values are read and checked when the object is created."""

    label: ClassVar[str]
    """What these settings are called in errors, and in an experiment file."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if not field.init:
                continue
            value = field.metadata["read"](getattr(self, field.name), f"{self.label}.{field.name}")
            object.__setattr__(self, field.name, value)
        self.check()

    def check(self) -> None:
        """Check rules that concern several settings at once."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return settings from a plain dict, such as a table of an experiment file.

        Raises:
            SimulationError: A setting is unknown, missing or wrong.
        """
        fields = [field for field in dataclasses.fields(cls) if field.init]
        known = [field.name for field in fields]
        for key in data:
            if key not in known:
                raise SimulationError(
                    f"{cls.label} has no setting {key!r}; it has {', '.join(known) or 'none'}"
                )
        for field in fields:
            needed = field.default is field.default_factory is dataclasses.MISSING
            if needed and field.name not in data:
                raise SimulationError(f"{cls.label} needs {field.name!r}")
            if field.metadata["read"] in (duration, optional_duration) and field.name in data:
                _needs_unit(data[field.name], f"{cls.label}.{field.name}")
        return cls(**data)

    def to_dict(self, *, in_nanoseconds: bool = False) -> dict[str, Any]:
        """Return the settings as plain values, from which `from_dict` makes them again.

        Args:
            in_nanoseconds: Give durations as numbers of nanoseconds, to compute
                with them. `from_dict` refuses those.
        """
        kind = getattr(self, "kind", None)
        data: dict[str, Any] = {} if kind is None else {"kind": kind}
        for field in dataclasses.fields(self):
            if not field.init:
                continue
            value = getattr(self, field.name)
            timed = field.metadata["read"] in (duration, optional_duration)
            if timed and value is not None and not in_nanoseconds:
                data[field.name] = format_duration(value)
            else:
                data[field.name] = _plain(value, in_nanoseconds)
        return data


def _plain(value: Any, in_nanoseconds: bool) -> Any:
    if isinstance(value, Settings):
        return value.to_dict(in_nanoseconds=in_nanoseconds)
    if isinstance(value, tuple):
        return [_plain(item, in_nanoseconds) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item, in_nanoseconds) for key, item in value.items()}
    return value


# -- readers of simple values --------------------------------------------------


def _refuse(what: str, expected: str, value: object) -> SimulationError:
    return SimulationError(f"{what} must be {expected}, not {value!r}")


def number(least: float, most: float = float("inf")) -> Reader[float]:
    """Return a reader of finite numbers within bounds."""
    bounds = f"from {least:g} to {most:g}" if most < float("inf") else f"from {least:g} upward"

    def read(value: Any, what: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _refuse(what, f"a number {bounds}", value)
        if not least <= value <= most or value == float("inf"):
            raise _refuse(what, f"a number {bounds}", value)
        return float(value)

    return read


fraction = number(0, 1)


def integer(least: int) -> Reader[int]:
    """Return a reader of integers of at least `least`."""

    def read(value: Any, what: str) -> int:
        if type(value) is not int or value < least:
            raise _refuse(what, f"an integer from {least} upward", value)
        return value

    return read


def flag(value: Any, what: str) -> bool:
    """True or false."""
    if type(value) is not bool:
        raise _refuse(what, "true or false", value)
    return value


def text(value: Any, what: str) -> str:
    """A string."""
    if type(value) is not str:
        raise _refuse(what, "a string", value)
    return value


def choice(*options: str) -> Reader[str]:
    """Return a reader that accepts one of a few words."""

    def read(value: Any, what: str) -> str:
        if value not in options:
            raise _refuse(what, f"one of {', '.join(options)}", value)
        return str(value)

    return read


def optional(read: Reader[T]) -> Reader[T | None]:
    """Return a reader that accepts None, or what `read` accepts."""

    def read_or_none(value: Any, what: str) -> T | None:
        return None if value is None else read(value, what)

    return read_or_none


def many(read: Reader[T]) -> Reader[tuple[T, ...]]:
    """Return a reader of lists, each item of which `read` accepts."""

    def read_all(value: Any, what: str) -> tuple[T, ...]:
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise _refuse(what, "a list", value)
        return tuple(read(item, f"{what}[{i}]") for i, item in enumerate(value))

    return read_all


def one_of(*classes: type[Settings]) -> Reader[Any]:
    """Return a reader of settings of one of several classes; in a dict, `kind` says which.

    With a single class there is no `kind`.

    Raises:
        SimulationError: The reader was given something else.
    """
    kinds = {cls.__dict__.get("kind", cls.label): cls for cls in classes}

    def read(value: Any, what: str) -> Any:
        if isinstance(value, classes):
            return value
        if not isinstance(value, Mapping):
            raise _refuse(what, "a table", value)
        if len(classes) == 1:
            return classes[0].from_dict(value)
        values = dict(value)
        kind = values.pop("kind", None)
        if kind not in kinds:
            raise SimulationError(f"{what} needs a kind out of {', '.join(kinds)}, not {kind!r}")
        return kinds[kind].from_dict(values)

    return read


# -- readers of quantities -----------------------------------------------------

_SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_RATES = {f"{unit}/s": Fraction(n) for unit, n in _SIZES.items()} | {
    f"{unit}/s": Fraction(n, 8) for unit, n in (("kbit", 10**3), ("Mbit", 10**6), ("Gbit", 10**9))
}
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z/]+)\s*")


def _quantity(value: Any, what: str, units: Mapping[str, int | Fraction], base: str) -> int:
    """Return a whole number of the base unit, from an integer or a string with a unit."""
    if type(value) is int and value >= 0:
        return value
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2] not in units:
        raise _refuse(what, f"{base}, or a string such as '5{list(units)[2]}'", value)
    exact = Fraction(match[1]) * units[match[2]]
    if exact.denominator != 1:
        raise _refuse(what, f"a whole number of {base}", value)
    return exact.numerator


def duration(value: Any, what: str) -> int:
    """Return nanoseconds, from a string with a unit or from an integer in Python code.

    Raises:
        SimulationError: The value is not a duration.
    """
    if type(value) is int and value >= 0:
        return value
    try:
        return parse_duration(value)
    except DurationError as error:
        raise SimulationError(f"{what}: {error}") from None


optional_duration: Reader[int | None] = optional(duration)


def _needs_unit(value: Any, what: str) -> None:
    """Refuse a duration in a file or on the command line that has no unit."""
    if value is not None and not isinstance(value, str):
        try:
            parse_duration(value)
        except DurationError as error:
            raise SimulationError(f"{what}: {error}") from None


def data_size(value: Any, what: str) -> int:
    """Return bytes, at least 0."""
    return _quantity(value, what, _SIZES, "bytes from 0 upward")


def data_rate(value: Any, what: str) -> int:
    """Return bytes a second, at least one."""
    bytes_a_second = _quantity(value, what, _RATES, "bytes a second")
    if bytes_a_second < 1:
        raise _refuse(what, "at least one byte a second", value)
    return bytes_a_second
