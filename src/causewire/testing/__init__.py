"""Tools to test a protocol, or an application on top of one.

`Network` joins endpoints in memory and does with packets what a test says;
`Oracle` judges what was delivered, by the definition of causal order alone;
`run` plays a random run on an adversarial network, `replay` a stored one, `shrink`
makes a small counterexample of one that fails. `causewire.testing.strategies` has
the same as Hypothesis strategies, and needs Hypothesis.
"""

from .adversary import command, run, runs
from .cases import Case, Reaction, load
from .narrative import narrate
from .network import Flying, Network
from .oracle import Oracle, OracleViolation
from .play import STUCK, WRONG, Outcome, Play, replay
from .profiles import PROFILES, Profile
from .promises import VARIANTS, admits, tolerated_networks
from .shrinking import shrink

__all__ = [
    "PROFILES",
    "STUCK",
    "VARIANTS",
    "WRONG",
    "Case",
    "Flying",
    "Network",
    "Oracle",
    "OracleViolation",
    "Outcome",
    "Play",
    "Profile",
    "Reaction",
    "admits",
    "command",
    "load",
    "narrate",
    "replay",
    "run",
    "runs",
    "shrink",
    "tolerated_networks",
]
