"""A graph of microservices: requests enter, and fan out from service to service.

The graph is data, for instance of an experiment file:

    [workload]
    kind = "microservices"
    [workload.services.gateway]
    replicas = 2
    calls = ["cart", "search"]
    [workload.services.cart]
    replicas = 3
    calls = [{ to = "stock", probability = 0.5 }, { to = "price", copies = 2 }]
    balance = "round-robin"
    [workload.services.search]
    calls = ["stock"]
    [workload.services.stock]
    [workload.services.price]

The services that no other service calls are the entrances: each of their replicas
starts a request after each think time. A process that gets a message makes the calls
of its service, one message each, to a replica that `balance` of the called service
chooses: `random`, `round-robin` (each caller in turn) or `sticky` (each caller
keeps to one). A cycle of calls would never end, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..errors import SimulationError
from ..process import Process, SimMessage
from ..settings import Settings, by, choice, fraction, integer, many, one_of, text
from .base import THINK, Action, Environment, Traffic, Workload

__all__ = ["Call", "Microservices", "Service"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Settings):
    """A call that a service makes for each message it gets."""

    label: ClassVar[str] = "call"
    to: str = field(metadata=by(text))
    probability: float = field(default=1.0, metadata=by(fraction))
    copies: int = field(default=1, metadata=by(integer(1)))


_table = one_of(Call)


def _call(value: Any, what: str) -> Call:
    call: Call = Call(to=value) if isinstance(value, str) else _table(value, what)
    return call


@dataclass(frozen=True, slots=True, kw_only=True)
class Service(Settings):
    """One service: how many processes it has, and whom it calls."""

    label: ClassVar[str] = "service"
    replicas: int = field(default=1, metadata=by(integer(1)))
    calls: tuple[Call, ...] = field(default=(), metadata=by(many(_call)))
    balance: str = field(default="random", metadata=by(choice("random", "round-robin", "sticky")))


def _services(value: Any, what: str) -> Mapping[str, Service]:
    if not isinstance(value, Mapping) or not value:
        raise SimulationError(f"{what} must be a table of services, not {value!r}")
    read = one_of(Service)
    services: dict[str, Service] = {}
    for name, service in value.items():
        try:
            services[text(name, what)] = read(service, f"{what}.{name}")
        except SimulationError as error:
            raise SimulationError(f"{what}.{name}: {error}") from None
    return services


@dataclass(frozen=True, slots=True, kw_only=True)
class Microservices(Workload):
    """A DAG of services; its processes are their replicas, cart.0, cart.1, ..."""

    label: ClassVar[str] = "microservices workload"
    kind: ClassVar[str] = "microservices"
    services: Mapping[str, Service] = field(metadata=by(_services))

    def check(self) -> None:
        """Check rules that concern several settings at once.

        Raises:
            SimulationError: The settings contradict each other.
        """
        for name, service in self.services.items():
            for call in service.calls:
                if call.to not in self.services:
                    raise SimulationError(f"service {name!r} calls {call.to!r}, which is not there")
        done: dict[str, bool] = {}
        for name in self.services:
            self._visit(name, [], done)
        if not any(self.services[name].calls for name in self.entrances()):
            raise SimulationError("no service that starts requests calls another one")

    def _visit(self, name: str, path: list[str], done: dict[str, bool]) -> None:
        if name in path:
            cycle = " -> ".join([*path[path.index(name) :], name])
            raise SimulationError(f"services call each other in a cycle: {cycle}")
        if name not in done:
            for call in self.services[name].calls:
                self._visit(call.to, [*path, name], done)
            done[name] = True

    def entrances(self) -> list[str]:
        """Return the services that no other service calls."""
        called = {call.to for service in self.services.values() for call in service.calls}
        return [name for name in self.services if name not in called]

    def own_names(self) -> tuple[str, ...]:
        return tuple(
            f"{name}.{i}"
            for name, service in self.services.items()
            for i in range(service.replicas)
        )

    def reach(self, names: Sequence[str]) -> list[int]:
        return [1]

    def traffic(self, environment: Environment) -> Traffic:
        return Graph(environment, self)


class Graph(Traffic):
    """A service graph at work; a process notes its service and its calls so far."""

    def __init__(self, environment: Environment, config: Microservices) -> None:
        super().__init__(environment)
        processes = iter(environment.processes)
        self._replicas: dict[str, list[str]] = {}
        self._calls: list[tuple[Call, ...]] = []
        self._turns: list[dict[str, int]] = []
        self._balance = {name: service.balance for name, service in config.services.items()}
        entrances = config.entrances()
        for name, service in config.services.items():
            replicas = [next(processes) for _ in range(service.replicas)]
            self._replicas[name] = [p.name for p in replicas]
            for p in replicas:
                self._calls.append(service.calls)
                self._turns.append({})
                p.left = int(name in entrances and bool(service.calls))

    def wake(self, p: Process) -> Iterator[Action]:
        yield from self._make_calls(p)
        if self.left:
            yield THINK

    def react(self, p: Process, message: SimMessage) -> Iterable[Action]:
        return self._make_calls(p)

    def _make_calls(self, p: Process) -> Iterator[Action]:
        for call in self._calls[p.index]:
            for _ in range(call.copies):
                if call.probability < 1 and self.random() >= call.probability:
                    continue
                if not self.left:
                    return
                self.left -= 1
                yield SimMessage(p, self._choose(p, call.to))

    def _choose(self, p: Process, service: str) -> str:
        replicas = self._replicas[service]
        balance = self._balance[service]
        if balance == "random":
            return replicas[int(self.random() * len(replicas))]
        turns = self._turns[p.index]
        turn = turns.get(service, p.index)
        if balance == "round-robin":
            turns[service] = turn + 1
        return replicas[turn % len(replicas)]
