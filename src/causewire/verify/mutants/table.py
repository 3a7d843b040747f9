"""`Mutant`: a protocol with a deliberate mistake, and a program in which the mistake shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ... import protocols
from ...core.endpoint import Endpoint
from ...protocols import Protocol

__all__ = ["Mutant"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A protocol with a deliberate mistake, and where the mistake shows.

    Attributes:
        name: A name of its own.
        of: The name of the protocol without the mistake.
        endpoint: The class with the mistake.
        erratum: The section of the list of errata that describes the mistake; empty if
            no paper has it.
        mistake: The mistake in one sentence.
        program: A program in which it shows, as `parse` reads it.
        network: Arguments of `NetworkModel`, if reordered packets are not enough.
        options: Options of the protocol.
    """

    name: str
    of: str
    endpoint: type[Endpoint]
    erratum: str
    mistake: str
    program: str
    network: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def protocol(self) -> Protocol:
        """The protocol with the mistake, for whatever takes a protocol."""
        original = protocols.describe(self.of).with_options(**self.options)
        return replace(original, name=self.name, endpoint=self.endpoint, summary=self.mistake)
