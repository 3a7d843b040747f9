"""Random durations: latencies, think times, handling times, jobs.

Every draw of a run comes from one generator, and from its `random()` alone: that
method is the one whose sequence Python promises to keep. The functions of the C
library differ between machines in the last bit, so `exp` and `log` are made here
from additions and multiplications, which do not: a seed means the same run
everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import frexp, ldexp
from typing import Any, ClassVar

from ..durations import DurationError, parse_duration
from .errors import SimulationError
from .settings import Settings, by, duration, number, one_of

__all__ = ["Constant", "Exponential", "LogNormal", "Normal", "Time", "Uniform", "span"]

Random = Callable[[], float]
"""The one generator: uniform over [0, 1)."""

_LN2 = 0.6931471805599453
_SQRT_HALF = 0.7071067811865476
_RATIO = 1.7155277699214135
"""sqrt(8/e), of the ratio-of-uniforms method."""


def exp(x: float) -> float:
    """e to the x: x = k ln 2 + r with small r, then a Taylor series in r."""
    k = round(x / _LN2)
    r = x - k * _LN2
    total = 1.0
    for n in range(14, 0, -1):
        total = 1.0 + total * r / n
    return ldexp(total, k)


def log(x: float) -> float:
    """The natural logarithm: x = m 2^k with m near 1, then a series in (m-1)/(m+1)."""
    m, k = frexp(x)
    if m < _SQRT_HALF:
        m, k = 2 * m, k - 1
    z = (m - 1) / (m + 1)
    square = z * z
    total = 0.0
    for n in range(25, 0, -2):
        total = total * square + 1.0 / n
    return k * _LN2 + 2 * z * total


def _normal(random: Random) -> float:
    """A standard normal deviate (Kinderman and Monahan's ratio of uniforms)."""
    while True:
        u = 1.0 - random()
        z = _RATIO * (random() - 0.5) / u
        if z * z <= -4.0 * log(u):
            return z


@dataclass(frozen=True, slots=True)
class Time(Settings):
    """A distribution of durations, in nanoseconds."""

    kind: ClassVar[str]

    def sampler(self, random: Random) -> Callable[[], int]:
        """Return a function that draws a duration at each call."""
        raise NotImplementedError

    def fixed(self) -> int | None:
        """Return the duration if it is always the same, or else None."""
        return None

    def longest(self) -> int:
        """Return about the longest duration to be expected, for time-outs."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Constant(Time):
    """Always the same duration."""

    label: ClassVar[str] = "constant"
    kind: ClassVar[str] = "constant"
    value: int = field(metadata=by(duration))

    def sampler(self, random: Random) -> Callable[[], int]:
        return lambda: self.value

    def fixed(self) -> int | None:
        return self.value

    def longest(self) -> int:
        return self.value


@dataclass(frozen=True, slots=True)
class Uniform(Time):
    """Any duration from `low` to `high`, all equally likely."""

    label: ClassVar[str] = "uniform"
    kind: ClassVar[str] = "uniform"
    low: int = field(metadata=by(duration))
    high: int = field(metadata=by(duration))

    def check(self) -> None:
        """Check rules that concern several settings at once.

        Raises:
            SimulationError: The settings contradict each other.
        """
        if self.high < self.low:
            raise SimulationError(f"uniform.high must be at least low, {self.low} ns")

    def sampler(self, random: Random) -> Callable[[], int]:
        low = self.low
        width = self.high - low + 1
        return lambda: low + int(random() * width)

    def longest(self) -> int:
        return self.high


@dataclass(frozen=True, slots=True)
class Exponential(Time):
    """Exponentially distributed around `mean`, as between independent arrivals."""

    label: ClassVar[str] = "exponential"
    kind: ClassVar[str] = "exponential"
    mean: int = field(metadata=by(duration))

    def sampler(self, random: Random) -> Callable[[], int]:
        mean = self.mean
        return lambda: int(-mean * log(1.0 - random()))

    def longest(self) -> int:
        return 7 * self.mean


@dataclass(frozen=True, slots=True)
class Normal(Time):
    """Normally distributed around `mean`; negative values become 0."""

    label: ClassVar[str] = "normal"
    kind: ClassVar[str] = "normal"
    mean: int = field(metadata=by(duration))
    deviation: int = field(metadata=by(duration))

    def sampler(self, random: Random) -> Callable[[], int]:
        mean = self.mean
        deviation = self.deviation
        return lambda: max(0, int(mean + deviation * _normal(random)))

    def longest(self) -> int:
        return self.mean + 3 * self.deviation


@dataclass(frozen=True, slots=True)
class LogNormal(Time):
    """Log-normally distributed: half below `median`, with a tail that grows with `sigma`."""

    label: ClassVar[str] = "lognormal"
    kind: ClassVar[str] = "lognormal"
    median: int = field(metadata=by(duration))
    sigma: float = field(default=0.5, metadata=by(number(0, 10)))

    def sampler(self, random: Random) -> Callable[[], int]:
        median = self.median
        sigma = self.sigma
        return lambda: int(median * exp(sigma * _normal(random)))

    def longest(self) -> int:
        return int(self.median * exp(3 * self.sigma))


_read = one_of(Constant, Uniform, Exponential, Normal, LogNormal)


def span(value: Any, what: str) -> Time:
    """Return a length of time: a `Time`, a table with its kind, or one fixed duration.

    Raises:
        SimulationError: The value is not a length of time.
    """
    if isinstance(value, int | float | str):
        try:
            return Constant(parse_duration(value))
        except DurationError as error:
            raise SimulationError(f"{what}: {error}") from None
    drawn: Time = _read(value, what)
    return drawn
