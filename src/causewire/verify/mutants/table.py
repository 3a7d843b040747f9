"""What is said of a protocol with a mistake in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...core.endpoint import Endpoint

__all__ = ["Mutant"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A protocol with a mistake, and where the mistake shows."""

    name: str
    of: str
    """The protocol that it would be without the mistake."""
    endpoint: Callable[..., Endpoint]
    erratum: str
    """Where the mistake is described; empty for one that nobody has printed."""
    mistake: str
    workload: str
    """One in which it shows, as `workloads.parse` reads it."""
    network: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `Network`, if it takes more than packets out of order."""
