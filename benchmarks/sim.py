"""How fast the simulator is, beside SimPy, and how little memory a long run takes.

    python benchmarks/sim.py [--messages M] [--repetitions R] [--skip-scale]

**The event loop.** Ping: clients and a server send a message to and fro, each with
a latency that is drawn, and count what arrives. Once with `causewire.sim.Scheduler`,
once with SimPy in the way of its own documentation (a `Store` for each process, and
a process that waits for the latency and then puts the message there).

**The whole simulator.** The same ping, with the same protocol endpoints on both
sides: `simulate`, with its whole summary (latencies, times held, messages in
transit, buffers, bytes), against a SimPy program that drives the endpoints and
notes latencies. Both must deliver the same number of messages, with the same mean
latency.

**Scale.** 10,000 processes with 8 correspondents each send up to 1,000,000 messages
under `sps`, each run in a process of its own, for the peak of its memory. Everybody
has met all correspondents early on; from there it must not grow.

CPU time is measured, the two sides take turns, and the best of several repetitions
counts: the machine may be shared.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from random import Random
from typing import Any

import simpy

from causewire import protocols
from causewire.core.endpoint import Delivery, Packet
from causewire.sim import (
    Config,
    Constant,
    Processes,
    SimulatedNetwork,
    Uniform,
    simulate,
    workloads,
)
from causewire.sim.scheduler import Scheduler
from causewire.sim.summary import Histogram

MS = 10**6
CLIENTS = 10
LOW, HIGH = 1 * MS, 2 * MS
Outcome = tuple[int, float]
"""Messages delivered, and the mean of their latencies."""


# -- the event loop alone ------------------------------------------------------


def loop_ours(messages: int) -> Outcome:
    scheduler = Scheduler()
    random = Random(1).random
    left = messages
    delivered = total = 0

    def send(client: int, to_server: bool) -> None:
        nonlocal left
        left -= 1
        latency = LOW + int(random() * (HIGH - LOW + 1))
        scheduler.at(scheduler.now + latency, arrive, client, to_server, scheduler.now)

    def arrive(client: int, at_server: bool, sent: int) -> None:
        nonlocal delivered, total
        delivered += 1
        total += scheduler.now - sent
        if left:
            send(client, not at_server)

    for client in range(CLIENTS):
        send(client, True)
    for _, _, happen, client, at_server, sent, _ in scheduler:
        happen(client, at_server, sent)
    return delivered, total / delivered


def loop_simpy(messages: int) -> Outcome:
    environment = simpy.Environment()
    random = Random(1).random
    left = messages
    delivered = total = 0
    clients = [simpy.Store(environment) for _ in range(CLIENTS)]
    server = simpy.Store(environment)

    def travel(store: Any, message: Any) -> Generator[Any, Any, None]:
        yield environment.timeout(LOW + int(random() * (HIGH - LOW + 1)))
        store.put(message)

    def send(store: Any, client: int) -> None:
        nonlocal left
        left -= 1
        environment.process(travel(store, (client, environment.now)))

    def process(mine: Any, starts: int | None) -> Generator[Any, Any, None]:
        nonlocal delivered, total
        if starts is not None:
            send(server, starts)
        while True:
            client, sent = yield mine.get()
            delivered += 1
            total += environment.now - sent
            if left:
                send(server if mine is not server else clients[client], client)

    environment.process(process(server, None))
    for client, store in enumerate(clients):
        environment.process(process(store, client))
    environment.run()
    return delivered, total / delivered


# -- endpoints, network and summary --------------------------------------------


def whole_ours(protocol: str, messages: int) -> Outcome:
    summary = simulate(
        Config(
            protocol=protocol,
            processes=Processes(count=CLIENTS + 1, think=Constant(0)),
            messages=messages,
            workload=workloads.RequestReply(),
            network=SimulatedNetwork(latency=Uniform(LOW, HIGH)),
        )
    )
    return summary.deliveries, summary.latency.mean_ns


def whole_simpy(protocol: str, messages: int) -> Outcome:
    environment = simpy.Environment()
    random = Random(1).random
    latencies = Histogram()
    left = messages
    names = ["server", *(f"client{i}" for i in range(CLIENTS))]
    endpoints = {name: protocols.create(protocol, name, names) for name in names}
    inboxes = {name: simpy.Store(environment) for name in names}

    def travel(source: str, destination: str, packet: Packet) -> Generator[Any, Any, None]:
        yield environment.timeout(LOW + int(random() * (HIGH - LOW + 1)))
        inboxes[destination].put((source, packet))

    def flush(name: str) -> None:
        for destination, packet in endpoints[name].take_packets():
            environment.process(travel(name, destination, packet))

    def process(name: str) -> Generator[Any, Any, None]:
        nonlocal left
        endpoint = endpoints[name]

        def delivered(delivery: Delivery) -> None:
            nonlocal left
            latencies.add(environment.now - delivery.payload)
            if left:
                left -= 1
                endpoint.send(delivery.source if name == "server" else "server", environment.now)

        endpoint.on_delivery = delivered
        if name != "server":
            left -= 1
            endpoint.send("server", environment.now)
            flush(name)
        while True:
            source, packet = yield inboxes[name].get()
            endpoint.receive(source, packet)
            flush(name)

    for name in names:
        environment.process(process(name))
    environment.run()
    return latencies.count, latencies.times().mean_ns


# -- side by side --------------------------------------------------------------


def compare(
    what: str,
    ours: Callable[[], Outcome],
    theirs: Callable[[], Outcome],
    messages: int,
    repetitions: int,
) -> None:
    """Take turns; print microseconds per message, and the ratio."""
    best: dict[str, float] = {}
    outcomes: dict[str, Outcome] = {}
    for _ in range(repetitions):
        for name, run in (("ours", ours), ("simpy", theirs)):
            started = time.process_time()
            outcomes[name] = run()
            spent = (time.process_time() - started) / messages * 1e6
            best[name] = min(spent, best.get(name, spent))
    (count, mean), (their_count, their_mean) = outcomes["ours"], outcomes["simpy"]
    if count != their_count or abs(mean - their_mean) > 0.02 * mean:
        raise SystemExit(f"{what}: not the same run: {outcomes}")
    ratio = best["simpy"] / best["ours"]
    print(f"{what:<28} {best['ours']:>8.2f} {best['simpy']:>8.2f} {ratio:>8.1f}", flush=True)


# -- scale ---------------------------------------------------------------------

SCALE = """
import resource, sys, time
from causewire.sim import Config, simulate
processes, messages = map(int, sys.argv[1:])
config = Config.from_dict({
    "protocol": "sps",
    "processes": {"count": processes, "think": {"kind": "uniform", "low": "0ms", "high": "200ms"}},
    "messages": messages,
    "workload": {"kind": "uniform", "correspondents": 8},
})
started = time.process_time()
summary = simulate(config)
spent = time.process_time() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
peak //= 1024 if sys.platform != "darwin" else 1024 * 1024
assert summary.deliveries == messages and summary.undelivered is None
print(messages, peak, spent, summary.events, summary.latency.p99_ns / 1e6)
"""


def scale(processes: int, messages: int) -> None:
    print(f"\n{processes:,} processes under sps, each run in a process of its own")
    print(f"{'messages':>10} {'peak MB':>8} {'us/message':>11} {'events/s':>9} {'p99 ms':>7}")
    for count in (messages // 4, messages // 2, messages):
        command = [sys.executable, "-c", SCALE, str(processes), str(count)]
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        sent, peak, spent, events, p99 = map(float, answer.split())
        print(
            f"{int(sent):>10,} {int(peak):>8} {spent / sent * 1e6:>11.1f}"
            f" {int(events / spent):>9,} {p99:>7.1f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="The simulator beside SimPy, and at scale.")
    parser.add_argument("--messages", type=int, default=30_000)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--skip-scale", action="store_true")
    options = parser.parse_args()
    m, r = options.messages, options.repetitions
    print(f"ping, {CLIENTS} clients and a server: microseconds of CPU per message")
    print(f"{'':<28} {'ours':>8} {'SimPy':>8} {'ratio':>8}")
    compare("event loop", lambda: loop_ours(m), lambda: loop_simpy(m), m, r)
    for protocol in ("unordered", "fifo", "csps", "sps"):

        def ours(protocol: str = protocol) -> Outcome:
            return whole_ours(protocol, m)

        def theirs(protocol: str = protocol) -> Outcome:
            return whole_simpy(protocol, m)

        compare(f"whole, {protocol}", ours, theirs, m, r)
    if not options.skip_scale:
        scale(10_000, 1_000_000)


if __name__ == "__main__":
    main()
