"""`Mutant`: a protocol with a deliberate mistake, and a program in which the mistake shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ... import protocols
from ...core.endpoint import Endpoint
from ...protocols import Protocol
from ..programs import parse
from ..setup import NetworkModel, Setup

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
        driver: The driver under which the mistake shows (see `Setup`).
    """

    name: str
    of: str
    endpoint: type[Endpoint]
    erratum: str
    mistake: str
    program: str
    network: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    driver: str = "packets"

    @property
    def protocol(self) -> Protocol:
        """The protocol with the mistake, for whatever takes a protocol."""
        original = protocols.describe(self.of).with_options(**self.options)
        return replace(original, name=self.name, endpoint=self.endpoint, summary=self.mistake)

    @property
    def setup(self) -> Setup:
        """The setup in which the mistake shows."""
        processes = len(parse(self.program))
        return Setup(self.protocol, processes, NetworkModel(**self.network), self.driver)
