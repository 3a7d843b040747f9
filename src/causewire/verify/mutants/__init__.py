"""Protocols with a deliberate mistake, which a check must find.

A checker that has never found anything has proved nothing. These are protocols in
which it has to find something: `csps` with its permits ignored, and the mistakes in
the text of the papers, put back one at a time. Each is an endpoint of the core except
for the line that is wrong, and a `Protocol` value like any other, so everything that
takes a protocol takes `MUTANTS[name].protocol`; `find` looks a name up both there and
in the registry. Numbers of errata are those that the modules of the core cite.

Mistakes that are not here, because no run goes wrong by them:

    1.3, 1.4, 2.6       marks that are mixed up: acks and permits are watermarks here
    1.7, 2.4            time is lost, and nothing changes that a process does
    2.5, line 71        an endless loop, for which nobody needs a search
    2.8, 5.3, 7.5       harmless: an extra packet, or a permit later than necessary
    3.4                 refused by `send`
    2.11, 5.7           what the protocols are like, and no mistakes in their text
                        (`lasso` finds the starvation of 5.7)
    7.7, 8.2            channels must be FIFO: for the network to say, not the protocol

And `cykas-as-printed` (5.1, 5.2) and `cykas-secret-sends` (5.6) are in the registry.
"""

from ... import protocols
from ...protocols import Protocol
from ..variants import VARIANTS
from . import csps, forgetting, others, runs, sps
from .table import Mutant

__all__ = ["MUTANTS", "Mutant", "find"]

MUTANTS = {
    mutant.name: mutant
    for mutant in (*csps.TABLE, *sps.TABLE, *others.TABLE, *runs.TABLE, *forgetting.TABLE)
}
"""All mutants, by name."""


def find(name: str) -> Protocol:
    """Return the mutant, the variant or the registered protocol of that name.

    Raises:
        LocalProtocolError: There is none.
    """
    if name in MUTANTS:
        return MUTANTS[name].protocol
    return VARIANTS.get(name) or protocols.describe(name)
