"""Protocols with a mistake in them: what a check must find.

A checker that has never found anything has proved nothing. Here is what it has to
find: `csps` with its permits ignored, and the mistakes of the papers' text put
back in, one at a time. Each is the real endpoint but for the line that is wrong;
`Setup` takes their names like those of the registry. Numbers of errata are those
that the modules of the core cite.

Not here, as no run goes wrong by them:

    1.3, 1.4, 2.6       marks that are mixed up: acks and permits are watermarks here
    1.7, 2.4            time is lost, and nothing changes that a process does
    2.5, line 71        an endless loop, for which nobody needs a search
    2.8, 5.3, 7.5       harmless: a packet too many, or a permit later than it could be
    3.4                 refused by `send`
    2.11, 5.7           what the protocols are like, and no mistakes in their text
                        (`lasso` finds the starvation of 5.7)
    7.7, 8.2            channels must be FIFO: for the network to say, not the protocol

And `cykas-as-printed` (5.1, 5.2) and `cykas-secret-sends` (5.6) are in the registry.
"""

from . import csps, others, sps
from .table import Mutant

__all__ = ["MUTANTS", "Mutant"]

MUTANTS = {mutant.name: mutant for mutant in (*csps.TABLE, *sps.TABLE, *others.TABLE)}
"""All of them, by name."""
