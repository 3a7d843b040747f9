"""What goes wrong in a run, and what the applications do meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from ...sim import Fault, Heal, Partition, SimulatedNetwork, Slow, Uniform

__all__ = ["Faults", "WireWorkload", "nanoseconds"]


def nanoseconds(seconds: float) -> int:
    """The simulator's unit; never less than was asked for."""
    return -int(-seconds * 1e9 // 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What the network and the machines do. Shares are probabilities, times in seconds."""

    loss: float = 0.0
    duplicate: float = 0.0
    corrupt: float = 0.0
    delay: tuple[float, float] = (0.001, 0.002)
    """Each datagram takes its own time; a wide range reorders."""
    partitions: int = 0
    pauses: int = 0
    moves: int = 0
    resolver: bool = True
    """Whether processes can look up where one that does not answer is by now. If not, two that
    moved may never reach each other again."""
    restarts: int = 0
    lasting: float = 0.5
    """How long a partition or a pause lasts, at the most."""
    dead_links: int = 0
    """How many times two processes cannot reach each other, while all others can."""
    slow_links: int = 0
    """How many times datagrams from one process to another take much longer for a while."""
    betrayals: int = 0
    """How often a process that owes others a message is restarted, or given up by one of them."""
    orphans: int = 0
    """How often a process dies, or is given up, while a message of it is under way to one
    process, and another one reacts to a later message of it."""
    chains: int = 0
    """How often a process holds back messages whose order only a process knows that dies."""
    forgets: int = 0
    """How often a process gives up another one, dead or alive."""
    leaves: int = 0
    """How many processes leave properly, for good."""
    clocks_set_back: int = 0
    """How often a process restarts with a lower number than before."""
    collisions: int = 0
    """How often a second process takes the name of a living one."""
    give_up_after: float | None = None
    """After how many seconds processes give up one that does not answer."""
    unread: int = 0
    """How often an application reads nothing for a while."""
    read_within: float | None = None
    """Within how many seconds applications promise to read."""
    remote: bool = False
    """Whether processes are on different machines, so that they search for the length of the
    datagrams that their paths carry."""
    narrow: int = 0
    """Longer datagrams than this vanish; 0: none do."""
    narrow_from: float = 0.0
    """Since when."""
    floods: int = 0
    """How often a stranger sends many datagrams to a process (see `strangers`)."""
    diversions: int = 0
    """How often the copies of a stranger arrive first, from another address."""
    misfit: bool = False
    """Whether there is a process with another protocol or another key."""
    absent: bool = False
    """Whether processes write to one that never was."""
    full_disks: float = 0.0
    """The share of processes that write a trace to a disk that fills up."""

    def network(self) -> SimulatedNetwork:
        """The network, as the simulator knows it."""
        low, high = map(nanoseconds, self.delay)
        latency = Uniform(low, high)
        return SimulatedNetwork(
            latency=latency, loss=self.loss, duplicate=self.duplicate, fifo=False
        )

    def cuts(self, names: Sequence[str], span: float, random: Random) -> list[Fault]:
        """Partitions of these processes, each with its end, at any time within a span."""
        faults: list[Fault] = []
        for k in range(self.partitions):
            begin = nanoseconds(random.uniform(0, span))
            end = begin + nanoseconds(random.uniform(0, self.lasting))
            side = random.sample(names, random.randint(1, len(names) - 1))
            rest = [name for name in names if name not in side]
            faults.append(Partition(at=begin, name=f"cut {k}", sides=(tuple(side), tuple(rest))))
            faults.append(Heal(at=end, name=f"cut {k}"))
        for k in range(self.dead_links):
            begin = nanoseconds(random.uniform(0, span))
            end = begin + nanoseconds(random.uniform(0, self.lasting))
            one, other = random.sample(names, 2)
            faults.append(Partition(at=begin, name=f"link {k}", sides=((one,), (other,))))
            faults.append(Heal(at=end, name=f"link {k}"))
        for k in range(self.slow_links):
            begin = nanoseconds(random.uniform(0, span))
            end = begin + nanoseconds(random.uniform(0, self.lasting))
            one, other = random.sample(names, 2)
            factor = random.choice((10.0, 100.0, 300.0))
            faults.append(
                Slow(at=begin, name=f"slow {k}", links=((one, other),), oneway=True, factor=factor)
            )
            faults.append(Heal(at=end, name=f"slow {k}"))
        return faults


@dataclass(frozen=True, slots=True, kw_only=True)
class WireWorkload:
    """What the applications do."""

    processes: int = 4
    messages: int = 20
    """Sent by each process on its own account."""
    replies: float = 0.5
    """Share of deliveries that are answered at once, to somebody."""
    multicast: float = 0.3
    broadcast: bool = False
    """Whether everything goes to everybody."""
    payload: tuple[int, int] = (0, 40)
    pace: float = 0.02
    """Seconds between two sends of a process, on average."""
    slow: float = 0.0
    """Seconds between two looks of an application into its queue; 0: at once."""

    @property
    def span(self) -> float:
        """About how long a process has something to send."""
        return self.messages * self.pace
