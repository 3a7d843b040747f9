"""How fast nodes are, beside pyzmq and beside themselves without causal order.

    python benchmarks/node.py [--messages N] [--repetitions R] [--only PART ...] [--plot FILE]
                              [--compiled DIR]

Processes of their own on loopback, payloads of 64 bytes:

    one way     one process sends, another receives
    both ways   two processes do both at the same time
    all to all  eight processes, or 32, each to a random other one
    latency     a message and its answer, one after the other: half a round trip
                (`benchmarks/latency.py` has more of this)
    distance    one way through a proxy that delays every datagram by 0, 20 and 100 ms,
                with room for a bandwidth-delay product (Almeida, section 2.3)

Messages per second are medians of several repetitions, contenders taking turns; over a
distance they are the best, since one lost datagram reduces a window that takes a while to
be as large again. `cpu` is microseconds of processor time per message, of all processes
together; it suffers less from company. With `--compiled DIR`, where DIR is what `python
hatch_build.py DIR` made, there are nodes on the compiled transport as well (except for
latency, which `benchmarks/latency.py` has, and distance). `zmq` is blocking
PUSH and PULL, compiled C on TCP with a thread of its own for I/O; `zmq.asyncio` is what
an asyncio program would use in place of a node.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import multiprocessing as mp
import random
import resource
import signal
import statistics
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from _builds import COMPILED, Builds
from _termination import say_when_terminated

from causewire.node import Closed, Config, Node, PeerGone, run
from causewire.testing.proxy import Proxy

PAYLOAD = bytes(64)
KEY = b"a cluster key of 32 random bytes"
NODES: dict[str, dict[str, Any]] = {
    "csps": {"protocol": "csps"},
    "adaptive": {"protocol": "adaptive"},
    "sps": {"protocol": "sps"},
    "fifo": {"protocol": "fifo"},
    "csps sealed": {"protocol": "csps", "key": KEY},
}
CONTENDERS = [*NODES, "zmq", "zmq.asyncio"]
FAR = Config(
    peer_messages=1 << 18, peer_bytes=1 << 26, total_messages=1 << 19, total_bytes=1 << 27,
    queue_messages=1 << 18, queue_bytes=1 << 27, early_bytes=1 << 27,
)  # fmt: skip

Result = dict[str, Any]


class Crew:
    """Processes that start together and report what they measured."""

    def __init__(self, work: Callable[..., Result], each: list[tuple[Any, ...]]) -> None:
        self._pipes: list[Connection] = []
        self._processes = []
        for arguments in each:
            ours, theirs = mp.Pipe()
            process = mp.Process(target=_job, args=(work, theirs, arguments), daemon=True)
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)

    def results(self) -> list[Result]:
        """Exchange addresses, let them go when all are ready, and collect."""
        addresses = [pipe.recv() for pipe in self._pipes]
        for pipe in self._pipes:
            pipe.send(addresses)
        for pipe in self._pipes:
            pipe.recv()
        for pipe in self._pipes:
            pipe.send("go")
        results = [pipe.recv() for pipe in self._pipes]
        for pipe in self._pipes:
            pipe.send("over")
        for process in self._processes:
            process.join()
        return results


def _job(work: Callable[..., Result], pipe: Connection, arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        result = work(pipe, *arguments)
    except (Closed, PeerGone):  # a signal has closed the nodes: nobody waits for a result
        return
    usage = resource.getrusage(resource.RUSAGE_SELF)
    result["cpu"] = usage.ru_utime + usage.ru_stime - result.pop("cpu_before", 0.0)
    pipe.send(result)
    pipe.recv()


def _ready(pipe: Connection) -> None:
    """Wait until everybody is: what is measured is messages, not how processes start."""
    pipe.send("ready")
    pipe.recv()


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


# -- nodes -----------------------------------------------------------------------


def node_work(
    pipe: Connection, me: int, count: int, sends: list[int], expected: int, settings: Any
) -> Result:
    """Send `count` messages to random ones of `sends`, and get `expected`."""
    names = [f"n{k}" for k in sends]
    choose = random.Random(me).choices(names, k=count) if names else []

    async def main() -> Result:
        async with Node(f"n{me}", **settings) as node:
            pipe.send(node.address)
            places = await asyncio.to_thread(pipe.recv)
            for k, place in enumerate(places):
                if k != me:
                    await node.add_peer(f"n{k}", tuple(place))
            while len(node.peers_up()) < len(places) - 1:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(_ready, pipe)
            result: Result = {"cpu_before": _cpu()}
            start = time.monotonic()

            async def send() -> None:
                for name in choose:
                    await node.send(name, PAYLOAD)

            sending = asyncio.create_task(send())
            left = expected
            if left:
                async for _ in node:
                    left -= 1
                    if not left:
                        break
            await sending
            result |= {"start": start, "end": time.monotonic()}
            await asyncio.sleep(0.2)  # let acks and permits through before saying goodbye
            return result

    return run(main())


def node_echo(pipe: Connection, me: int, count: int, settings: Any) -> Result:
    """Process 0 asks and measures, process 1 answers."""

    async def main() -> Result:
        async with Node(f"n{me}", **settings) as node:
            pipe.send(node.address)
            places = await asyncio.to_thread(pipe.recv)
            other = f"n{1 - me}"
            await node.add_peer(other, tuple(places[1 - me]))
            await asyncio.to_thread(_ready, pipe)
            times = []
            for k in range(count):
                start = time.perf_counter()
                if me == 0:
                    await node.send(other, PAYLOAD)
                await node.receive()
                if me == 1:
                    await node.send(other, PAYLOAD)
                elif k > count // 10:
                    times.append((time.perf_counter() - start) / 2)
            return {"times": times}

    return run(main())


# -- pyzmq -----------------------------------------------------------------------


def zmq_work(
    pipe: Connection, me: int, count: int, sends: list[int], expected: int, _: Any
) -> Result:
    import zmq

    choose = random.Random(me).choices(sends, k=count) if sends else []
    context = zmq.Context()
    pull = context.socket(zmq.PULL)
    port = pull.bind_to_random_port("tcp://127.0.0.1")
    pipe.send(("127.0.0.1", port))
    places = pipe.recv()
    push = {k: context.socket(zmq.PUSH) for k in sends}
    for k, socket in push.items():
        socket.connect(f"tcp://127.0.0.1:{places[k][1]}")
    _ready(pipe)
    result: Result = {"cpu_before": _cpu()}
    start = time.monotonic()

    def send() -> None:
        for k in choose:
            push[k].send(PAYLOAD)

    if sends and expected:
        sending = threading.Thread(target=send)
        sending.start()
        for _ in range(expected):
            pull.recv()
        sending.join()
    elif sends:
        send()
    else:
        for _ in range(expected):
            pull.recv()
    for socket in push.values():
        socket.close()
    result |= {"start": start, "end": time.monotonic()}
    pull.close()
    context.term()
    return result


def zmq_asyncio_work(
    pipe: Connection, me: int, count: int, sends: list[int], expected: int, _: Any
) -> Result:
    import zmq.asyncio

    choose = random.Random(me).choices(sends, k=count) if sends else []

    async def main() -> Result:
        context = zmq.asyncio.Context()
        pull = context.socket(zmq.PULL)
        port = pull.bind_to_random_port("tcp://127.0.0.1")
        pipe.send(("127.0.0.1", port))
        places = pipe.recv()
        push = {k: context.socket(zmq.PUSH) for k in sends}
        for k, socket in push.items():
            socket.connect(f"tcp://127.0.0.1:{places[k][1]}")
        _ready(pipe)
        result: Result = {"cpu_before": _cpu()}
        start = time.monotonic()

        async def send() -> None:
            for k in choose:
                await push[k].send(PAYLOAD)

        sending = asyncio.create_task(send())
        for _ in range(expected):
            await pull.recv()
        await sending
        result |= {"start": start, "end": time.monotonic()}
        for socket in (pull, *push.values()):
            socket.close()
        context.term()
        return result

    return asyncio.run(main())


def zmq_echo(pipe: Connection, me: int, count: int, asynchronous: bool) -> Result:
    import zmq
    import zmq.asyncio

    context: Any = zmq.asyncio.Context() if asynchronous else zmq.Context()
    socket = context.socket(zmq.PAIR)
    if me == 0:
        pipe.send(("127.0.0.1", socket.bind_to_random_port("tcp://127.0.0.1")))
        pipe.recv()
    else:
        pipe.send(None)
        socket.connect(f"tcp://127.0.0.1:{pipe.recv()[0][1]}")
    _ready(pipe)
    times = []

    async def main() -> None:
        for k in range(count):
            start = time.perf_counter()
            for step in (0, 1):
                todo = socket.send(PAYLOAD) if step == me else socket.recv()
                if asynchronous:
                    await todo
            if me == 0 and k > count // 10:
                times.append((time.perf_counter() - start) / 2)

    asyncio.run(main())
    socket.close()
    context.term()
    return {"times": times}


# -- parts -----------------------------------------------------------------------

WORK = {"zmq": zmq_work, "zmq.asyncio": zmq_asyncio_work}


def crowd(contender: str, shape: str, messages: int) -> tuple[float, float]:
    """Messages per second, and microseconds of processor time per message."""
    work = WORK.get(contender, node_work)
    settings = NODES.get(contender, {})
    if contender == "zmq.asyncio":
        messages //= 10
    if shape == "one way":
        each = [(0, messages, [1], 0, settings), (1, 0, [], messages, settings)]
        total = messages
    elif shape == "both ways":
        half = messages // 2
        each = [(k, half, [1 - k], half, settings) for k in (0, 1)]
        total = 2 * half
    else:
        many = 32 if shape.endswith("32") else 8
        share = messages // many
        others = [[j for j in range(many) if j != k] for k in range(many)]
        to = [random.Random(k).choices(others[k], k=share) for k in range(many)]
        expected = [sum(names.count(k) for names in to) for k in range(many)]
        each = [(k, share, others[k], expected[k], settings) for k in range(many)]
        total = many * share
    results = Crew(work, each).results()
    seconds = max(r["end"] for r in results) - min(r["start"] for r in results)
    return total / seconds, sum(r["cpu"] for r in results) / total * 1e6


def show_crowds(shapes: list[str], messages: int, repetitions: int, builds: Builds) -> None:
    names = [*builds.both(NODES), "zmq", "zmq.asyncio"]
    for shape in shapes:
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        for _ in range(repetitions):
            for name in names:
                taken[name].append(builds.call("node", "crowd", name, shape, messages))
        rates = {name: statistics.median(rate for rate, _ in some) for name, some in taken.items()}
        print(f"\n{shape}")
        print(
            f"  {'':20} {'msg/s':>10} {'cpu':>6} {'x fifo':>8} {'x zmq':>8} {'x zmq.asyncio':>14}"
        )
        for name in names:
            fifo = "fifo" + COMPILED if name.endswith(COMPILED) else "fifo"
            ratios = [rates[name] / rates[other] for other in (fifo, "zmq", "zmq.asyncio")]
            cpu = statistics.median(cpu for _, cpu in taken[name])
            print(
                f"  {name:20} {rates[name]:10,.0f} {cpu:6.2f} "
                f"{ratios[0]:8.2f} {ratios[1]:8.2f} {ratios[2]:14.1f}",
                flush=True,
            )


def show_latency(count: int) -> None:
    print("\nlatency, microseconds")
    print(f"  {'':12} {'median':>8} {'90 %':>8} {'99 %':>8}")
    for name in CONTENDERS:
        if name in NODES:
            crew = Crew(node_echo, [(k, count, NODES[name]) for k in (0, 1)])
        else:
            crew = Crew(zmq_echo, [(k, count, name == "zmq.asyncio") for k in (0, 1)])
        times = crew.results()[0]["times"]
        cuts = statistics.quantiles(times, n=100)
        print(f"  {name:12} {cuts[49] * 1e6:8.0f} {cuts[89] * 1e6:8.0f} {cuts[98] * 1e6:8.0f}")


# -- distance --------------------------------------------------------------------

DELAYS = (0.0, 0.020, 0.100)


logging.getLogger("causewire").setLevel(logging.ERROR)  # nodes that end in full flight


def far_work(pipe: Connection, me: int, seconds: float, protocol: str) -> Result:
    """Process 0 sends to process 1 for some seconds; the second half of them counts."""

    async def main() -> Result:
        async with Node(f"n{me}", drain=0.0, protocol=protocol, config=FAR) as node:
            pipe.send(node.address)
            places = await asyncio.to_thread(pipe.recv)
            await node.add_peer(f"n{1 - me}", tuple(places[me]))
            counted = 0

            async def send() -> None:
                while True:
                    await node.send("n1", PAYLOAD)

            async def count() -> None:
                nonlocal counted
                async for _ in node:
                    counted += 1

            busy = asyncio.create_task(send() if me == 0 else count())
            await asyncio.sleep(seconds / 2)
            counted = 0
            await asyncio.sleep(seconds / 2)
            busy.cancel()
            return {"rate": counted / (seconds / 2)}

    return run(main())


def far_proxy(ours: Connection, delay: float) -> None:
    async def main() -> None:
        places = ours.recv()
        proxy = Proxy({"n0": tuple(places[0]), "n1": tuple(places[1])}, delay=(delay, delay))
        await proxy.start()
        ours.send([proxy.address("n0", "n1"), proxy.address("n1", "n0")])
        await asyncio.to_thread(ours.recv)

    run(main())


def distance(protocol: str, delay: float, seconds: float) -> float:
    """Messages per second through a proxy."""
    ours, theirs = mp.Pipe()
    proxy = mp.Process(target=far_proxy, args=(theirs, delay), daemon=True)
    proxy.start()
    crew = Crew(far_work, [(k, seconds, protocol) for k in (0, 1)])
    addresses = [pipe.recv() for pipe in crew._pipes]
    ours.send(addresses)
    middle = ours.recv()
    for pipe in crew._pipes:
        pipe.send(middle)
    results = [pipe.recv() for pipe in crew._pipes]
    for pipe in crew._pipes:
        pipe.send("over")
    ours.send("over")
    proxy.join()
    return float(results[1]["rate"])


def draw_rates(rates: dict[str, list[tuple[float, float]]], plot: str) -> None:
    from causewire.report.charts import lines_spec
    from causewire.report.numbers import Point, estimate
    from causewire.report.plan import FigurePlan
    from causewire.report.vega import write_pictures

    plan = FigurePlan(
        name="rates",
        title="Messages per second against delay",
        x="delay",
        x_label="delay (ms)",
        y="rate",
        y_label="messages per second",
        y_scale="log",
    )
    points = [
        Point(None, (name,), (), 1000 * delay, estimate([rate]))
        for name, pairs in rates.items()
        for delay, rate in pairs
    ]
    write_pictures(lines_spec(plan, points), Path(plot).parent, Path(plot).stem)


def show_distance(seconds: float, repetitions: int, plot: str | None) -> None:
    protocols = ("csps", "sps", "fifo", "mf", "cykas")
    print("\ndistance: messages per second with a delay of")
    print(
        "  " + " " * 8 + "".join(f"{1000 * delay:>9.0f} ms" for delay in DELAYS) + "   last/first"
    )
    rates = {}
    for name in protocols:
        rates[name] = [
            max(distance(name, delay, seconds) for _ in range(repetitions)) for delay in DELAYS
        ]
        row = "".join(f"{rate:12,.0f}" for rate in rates[name])
        print(f"  {name:8}{row} {rates[name][-1] / max(rates[name][0], 1e-9):12.3f}", flush=True)
    if plot:
        draw_rates({name: list(zip(DELAYS, rates[name], strict=True)) for name in rates}, plot)
        print(f"  drawn in {plot}")


def main() -> None:
    say_when_terminated()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    shapes = ["one way", "both ways", "all to all", "all to all, 32"]
    parser.add_argument("--messages", type=int, default=800_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6.0, help="for each delay")
    parser.add_argument("--only", nargs="+", choices=[*shapes, "latency", "distance"])
    parser.add_argument("--plot", metavar="FILE", help="where to draw throughput by distance")
    parser.add_argument("--compiled", type=Path, metavar="DIR", help="nodes of both builds")
    args = parser.parse_args()
    chosen = args.only or [*shapes, "latency", "distance"]
    builds = Builds(args.compiled)
    print(builds.describe())
    show_crowds([s for s in shapes if s in chosen], args.messages, args.repetitions, builds)
    if "latency" in chosen:
        show_latency(3000)
    if "distance" in chosen:
        show_distance(args.seconds, args.repetitions, args.plot)


if __name__ == "__main__":
    main()
