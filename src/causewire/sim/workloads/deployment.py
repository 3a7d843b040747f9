"""A microservice deployment with the published characteristics of production systems.

`microservices` runs a graph that you write down. This workload generates one, as
large as you like, with the properties that studies of Alibaba's and Meta's systems
have reported (docs/study.md cites them; `causewire workload` compares them with what
is generated):

    services    entry, middle and leaf services in given shares, each with many
                replicas; a few services get most of the calls
    functions   what users ask for. Each has an entry service and a call graph: a
                tree whose size has a heavy tail, wide rather than deep
    calls       synchronous (the caller waits for the reply, in sequence or in
                parallel) or through a message queue: a broker passes the message on,
                and nobody replies. Some calls are repeated. A part of a call graph
                may be left out of a request, so requests for one function differ

A replica of an entry service starts a request after each think time. A process that
is called handles the message (`processes.handling`), makes its own calls, and replies
when those that it waits for have replied. Every call and every reply is a message.

The deployment depends on the settings and on `seed` alone, not on the seed of the
run: runs with different seeds are different days of the same system.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from random import Random
from typing import ClassVar

from ..errors import SimulationError
from ..process import Process, SimMessage
from ..settings import by, choice, fraction, integer, number, optional
from ..summary import Histogram
from ..times import exp, log
from .base import NOTHING, THINK, Action, Environment, Traffic, Workload

__all__ = ["BROKER", "ENTRY", "LEAF", "MIDDLE", "CallNode", "Deployment", "Function", "Plan"]

ENTRY, MIDDLE, LEAF, BROKER = "entry", "middle", "leaf", "broker"

_INSTANCES = {ENTRY: 16, MIDDLE: 41, LEAF: 17, BROKER: 17}
"""Instances of a service by its role, of which only the ratios matter (Winchester et al.)."""

_SPREAD = 0.7
"""Replicas of a service grow with its popularity to this power."""


class CallNode:
    """One call of a call graph, and the calls that follow from it."""

    __slots__ = ("calls", "optional", "parallel", "queued", "service")

    def __init__(self, service: int, queued: bool, parallel: bool, optional: bool) -> None:
        self.service = service
        """The service that is called, by its number."""
        self.queued = queued
        """Whether the call goes through a message queue."""
        self.parallel = parallel
        """Whether the calls that follow are made all at once."""
        self.optional = optional
        """Whether this part of the call graph may be left out."""
        self.calls: list[CallNode] = []

    def size(self) -> int:
        """Return the number of calls below this one."""
        return sum(1 + call.size() for call in self.calls)

    def depth(self) -> int:
        """Return the length of the longest chain of calls below this one."""
        return max((1 + call.depth() for call in self.calls), default=0)

    def nodes(self) -> Iterator[CallNode]:
        """Yield this call and all that follow from it."""
        yield self
        for call in self.calls:
            yield from call.nodes()


@dataclass(frozen=True, slots=True)
class Function:
    """What users ask for: its call graph, and how often it is asked for."""

    root: CallNode
    weight: float


@dataclass(frozen=True, slots=True)
class Plan:
    """A generated deployment: services with their replicas, and functions."""

    roles: tuple[str, ...]
    """The role of each service."""
    replicas: tuple[int, ...]
    """The number of processes of each service."""
    functions: tuple[Function, ...]

    def names(self) -> tuple[str, ...]:
        """Return the names of all processes: entry0.0, entry0.1, ..., leaf12.7, ..."""
        return tuple(
            f"{role}{service}.{i}"
            for service, role in enumerate(self.roles)
            for i in range(self.replicas[service])
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment(Workload):
    """A generated deployment; the defaults are those of Alibaba's studies.

    For a deployment like Meta's, with wide and shallow call graphs, set `fanout` to
    50 and `depth` to 3.
    """

    label: ClassVar[str] = "deployment workload"
    kind: ClassVar[str] = "deployment"
    size: int = field(default=1000, metadata=by(integer(6)))
    """The number of processes, replicas and brokers included."""
    services: int | None = field(default=None, metadata=by(optional(integer(4))))
    """The number of services; by default one for 28 processes, and at least 12 if possible."""
    functions: int = field(default=200, metadata=by(integer(1)))
    """The number of functions."""
    entry: float = field(default=0.13, metadata=by(fraction))
    leaf: float = field(default=0.39, metadata=by(fraction))
    """The shares of services that are entries, and that make no calls."""
    calls: float = field(default=3.0, metadata=by(number(1, 1e4)))
    """The median number of calls in a call graph."""
    tail: float = field(default=1.7, metadata=by(number(0, 3)))
    """How heavy the tail of that number is: the sigma of a log-normal distribution."""
    most: int = field(default=1000, metadata=by(integer(1)))
    """The maximum number of calls in a call graph."""
    fanout: int = field(default=10, metadata=by(integer(1)))
    """The maximum number of different services that a service calls."""
    depth: int = field(default=6, metadata=by(integer(1)))
    """The maximum length of a chain of calls."""
    repeated: float = field(default=0.35, metadata=by(fraction))
    """The probability that a call, after the first of a place, repeats the one before."""
    skew: float = field(default=1.5, metadata=by(number(0, 4)))
    """How unequal the popularity of services is: the exponent of a Zipf law; half for functions."""
    queued: float = field(default=0.1, metadata=by(fraction))
    """The probability that a call goes through a message queue."""
    parallel: float = field(default=0.5, metadata=by(fraction))
    """The probability that the calls of a place are made all at once."""
    optional: float = field(default=0.1, metadata=by(fraction))
    """The probability that a part of a call graph is optional; half of the requests skip it."""
    balance: str = field(default="random", metadata=by(choice("random", "round-robin", "sticky")))
    """How a replica of the called service is chosen."""
    seed: int = field(default=0, metadata=by(integer(0)))
    """The seed of the deployment."""
    plan: Plan = field(init=False, repr=False, compare=False)

    def check(self) -> None:
        """Generate the deployment.

        Raises:
            SimulationError: The settings leave no room for all kinds of services.
        """
        if self.entry + self.leaf >= 1:
            raise SimulationError("deployment workload: entry and leaf must leave room for others")
        if self.services is not None and self.services > self.size:
            raise SimulationError(
                f"deployment workload: {self.services} services need at least as many processes, "
                f"not {self.size}"
            )
        object.__setattr__(self, "plan", _plan(self))

    def own_names(self) -> tuple[str, ...]:
        return self.plan.names()

    def reach(self, names: Sequence[str]) -> list[int]:
        return [1]

    def traffic(self, environment: Environment) -> Traffic:
        return Requests(environment, self)


# -- generating a deployment -----------------------------------------------------------


@lru_cache(maxsize=128)
def _plan(config: Deployment) -> Plan:
    """Generate a deployment; runs that differ in protocol or seed share it."""
    return _Generator(config).plan()


class _Generator:
    """Draws services, replicas and call graphs."""

    def __init__(self, config: Deployment) -> None:
        self._config = config
        self._random = Random(config.seed).random
        size = config.size
        services = config.services or max(min(size, 12), round(size / 28))
        brokers = 1 if config.queued else 0
        entries = max(1, round(config.entry * services))
        leaves = max(1, round(config.leaf * services))
        middles = max(1, services - entries - leaves - brokers)
        self._members: dict[str, list[int]] = {}
        self._roles: list[str] = []
        for role, number_of in (
            (ENTRY, entries),
            (MIDDLE, middles),
            (LEAF, leaves),
            (BROKER, brokers),
        ):
            first = len(self._roles)
            self._members[role] = list(range(first, first + number_of))
            self._roles += [role] * number_of
        self._popularity = {
            role: _zipf(len(members), config.skew) for role, members in self._members.items()
        }
        self._totals = {role: list(accumulate(p)) for role, p in self._popularity.items()}
        self._dependencies: dict[tuple[int, str], list[int]] = {}

    def plan(self) -> Plan:
        config = self._config
        weights = _zipf(config.functions, config.skew / 2)
        functions = tuple(
            Function(self._graph(_stratum(rank)), weight) for rank, weight in enumerate(weights)
        )
        return Plan(tuple(self._roles), self._replicas(), functions)

    def _graph(self, quantile: float) -> CallNode:
        """Return a call graph whose size is that quantile of the distribution of sizes."""
        config = self._config
        calls = config.calls * exp(config.tail * _normal_quantile(quantile))
        root = CallNode(self._pick(ENTRY), False, self._random() < config.parallel, False)
        self._grow(root, max(1, min(config.most, round(calls))), 1)
        return root

    def _grow(self, node: CallNode, calls: int, depth: int) -> None:
        """Give a call the calls that follow from it, that many in all."""
        config = self._config
        width = min(calls, 1 + int(-2.0 * log(1.0 - self._random())), config.fanout)
        if depth == config.depth:
            width = calls
        below = self._shares(calls - width, width)
        for budget in below:
            role = MIDDLE if budget else LEAF
            before = node.calls[-1].service if node.calls else None
            again = self._random() < config.repeated
            if before is not None and again and self._roles[before] == role:
                service = before
            else:
                service = self._called_by(node.service, role, before)
            call = CallNode(
                service,
                bool(self._members[BROKER]) and self._random() < config.queued,
                self._random() < config.parallel,
                self._random() < config.optional,
            )
            node.calls.append(call)
            if budget:
                self._grow(call, budget, depth + 1)

    def _shares(self, total: int, parts: int) -> list[int]:
        """Divide a number of calls unequally: each part gets a random share of the rest."""
        shares = []
        for _ in range(parts - 1):
            share = int(total * self._random())
            shares.append(share)
            total -= share
        return [*shares, total]

    def _called_by(self, caller: int, role: str, before: int | None) -> int:
        """Draw one of the services that a service calls, another one than before if possible.

        Which ones these are is decided when it is first asked for: a few leaves and a
        few others, by their popularity.
        """
        known = self._dependencies.get((caller, role))
        if known is None:
            wanted = 2 + int(-0.1 * self._config.fanout * log(1.0 - self._random()))
            wanted = min(wanted, max(2, self._config.fanout // 2), len(self._members[role]))
            drawn = [self._pick(role) for _ in range(10 * wanted)]
            known = list(dict.fromkeys(service for service in drawn if service != caller))
            known = self._dependencies[caller, role] = known[:wanted] or drawn[:1]
        others = [service for service in known if service != before] or known
        return others[int(self._random() * len(others))]

    def _pick(self, role: str) -> int:
        """Draw a service by its popularity."""
        totals = self._totals[role]
        return self._members[role][bisect(totals, self._random() * totals[-1])]

    def _replicas(self) -> tuple[int, ...]:
        """Distribute the processes over the services; every service gets at least one."""
        weights: list[float] = []
        for role, members in self._members.items():
            spread = [exp(_SPREAD * log(popularity)) for popularity in self._popularity[role]]
            each = _INSTANCES[role] * len(members) / sum(spread) if members else 0.0
            weights += [each * weight for weight in spread]
        spare = self._config.size - len(weights)
        exact = [spare * weight / sum(weights) for weight in weights]
        replicas = [1 + int(share) for share in exact]
        rest = self._config.size - sum(replicas)
        by_fraction = sorted(range(len(exact)), key=lambda i: (int(exact[i]) - exact[i], i))
        for i in by_fraction[:rest]:
            replicas[i] += 1
        return tuple(replicas)


def _zipf(n: int, exponent: float) -> list[float]:
    """Return weights 1, 1/2^s, 1/3^s, ... that add up to 1."""
    weights = [exp(-exponent * log(rank)) for rank in range(1, n + 1)]
    total = sum(weights)
    return [weight / total for weight in weights]


def _stratum(rank: int) -> float:
    """Return 1/2, 1/4, 3/4, 1/8, ...: popular functions cover the distribution evenly."""
    value, base = 0.0, 0.5
    rank += 1
    while rank:
        value += base * (rank & 1)
        rank >>= 1
        base /= 2
    return value


def _normal_quantile(p: float) -> float:
    """Return the quantile of the standard normal distribution (Abramowitz and Stegun 26.2.23)."""
    tail = min(p, 1 - p)
    t = exp(0.5 * log(-2.0 * log(tail)))
    z = t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (
        1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t
    )
    return z if p > 0.5 else -z


# -- at work --------------------------------------------------------------------------------

_CALLED, _QUEUED, _REPLIED = range(3)


class _Call:
    """A call that is being made: a message, and the state of its receiver."""

    __slots__ = ("caller", "made", "node", "process", "sent", "stage", "waiting")

    def __init__(self, node: CallNode, caller: _Call | None) -> None:
        self.node = node
        self.caller = caller
        self.stage = _CALLED
        self.process: Process | None = None
        """Who handles the call."""
        self.made = 0
        """How many of its own calls it has made."""
        self.waiting = 0
        """How many replies it waits for."""
        self.sent = 0


class Requests(Traffic):
    """A deployment at work."""

    def __init__(self, environment: Environment, config: Deployment) -> None:
        super().__init__(environment)
        plan = config.plan
        self._balance = config.balance
        self._replicas: list[list[str]] = []
        self._brokers: list[str] = []
        self._functions: list[tuple[list[CallNode], list[float]]] = []
        """For each process: the functions that it serves, and their cumulated weights."""
        self._turns: list[dict[int, int]] = [{} for _ in environment.processes]
        processes = iter(environment.processes)
        for service, role in enumerate(plan.roles):
            members = [next(processes) for _ in range(plan.replicas[service])]
            self._replicas.append([p.name for p in members])
            served = [f for f in plan.functions if f.root.service == service]
            cumulated = list(accumulate(f.weight for f in served))
            for p in members:
                p.left = int(role == ENTRY and bool(served))
                self._functions.append(([f.root for f in served], cumulated))
            if role == BROKER:
                self._brokers = self._replicas[-1]
        self.response = Histogram()
        """Times from a synchronous call to the moment at which the callee replies."""

    def wake(self, p: Process) -> Iterator[Action]:
        roots, cumulated = self._functions[p.index]
        root = roots[bisect(cumulated, self.random() * cumulated[-1])]
        request = _Call(root, None)
        request.process = p
        yield from self._proceed(p, request)
        if self.left:
            yield THINK

    def react(self, p: Process, message: SimMessage) -> Iterable[Action]:
        call: _Call = message.note
        if call.stage == _REPLIED:
            caller = call.caller
            if caller is None:
                return NOTHING
            self.response.add(message.sent - call.sent)
            caller.waiting -= 1
            return self._proceed(p, caller)
        if call.stage == _QUEUED:  # at the broker
            call.stage = _CALLED
            return self._message(p, self._choose(p, call.node.service), call)
        call.process = p
        if not call.node.queued:
            call.sent = message.sent
        return self._proceed(p, call)

    def _proceed(self, p: Process, call: _Call) -> Iterator[Action]:
        """Make the calls that p can make now, and reply when there is nothing left to do."""
        calls = call.node.calls
        while call.made < len(calls) and (call.node.parallel or not call.waiting):
            node = calls[call.made]
            call.made += 1
            if node.optional and self.random() < 0.5:
                continue
            called = _Call(node, call)
            if node.queued:
                called.stage = _QUEUED
                to = self._brokers[int(self.random() * len(self._brokers))]
            else:
                call.waiting += 1
                to = self._choose(p, node.service)
            yield from self._message(p, to, called)
        caller = call.caller
        done = call.made == len(calls) and not call.waiting
        if done and caller is not None and not call.node.queued and caller.process is not None:
            call.stage = _REPLIED
            yield from self._message(p, caller.process.name, call)

    def _message(self, p: Process, to: str, call: _Call) -> tuple[Action, ...]:
        if not self.left:
            return NOTHING
        self.left -= 1
        return (SimMessage(p, to, call),)

    def _choose(self, p: Process, service: int) -> str:
        replicas = self._replicas[service]
        if self._balance == "random":
            return replicas[int(self.random() * len(replicas))]
        turns = self._turns[p.index]
        turn = turns.get(service, p.index)
        if self._balance == "round-robin":
            turns[service] = turn + 1
        return replicas[turn % len(replicas)]
