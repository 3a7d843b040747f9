"""The arguments of `causewire verify` that say what to check and how, and what they mean."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.endpoint import LocalProtocolError
from ..protocols import Protocol
from ..verify import (
    MUTANTS,
    PROGRAMS,
    PROPERTIES,
    NetworkModel,
    Program,
    ProgramError,
    SearchOptions,
    Setup,
    Unit,
    broadcasts,
    find,
    multicasts,
    parse,
    unicasts,
    up_to_renaming,
)
from ..verify.check import with_m1
from ..verify.driver import DRIVERS
from ..verify.generator import all_relays, sampled
from .errors import CommandError
from .named import OWN, protocol_named

__all__ = [
    "REDUCTIONS",
    "add_network_arguments",
    "add_search_arguments",
    "add_what_arguments",
    "needs_directories",
    "protocol_of",
    "units_of",
]

REDUCTIONS = ("symmetry", "merge", "forget", "prune", "commuting")
_USUAL = REDUCTIONS[:-1]

_ORDERS = {"bfs": "breadth", "dfs": "depth", "walk": "random"}


def add_what_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to check")
    add = group.add_argument
    add(
        "--protocol",
        required=True,
        metavar="P",
        help=f"a protocol (see causewire protocols), a mutant, {OWN}",
    )
    add("--processes", type=int, metavar="N", help="default: 3")
    add(
        "--messages",
        metavar="M",
        help="messages of each process, or a number for each: 5,1,1; default: 3",
    )
    add(
        "--program",
        "--workload",
        action="append",
        metavar="W",
        help=f"this one instead of all; or a file with one in each line; or {', '.join(PROGRAMS)}, "
        "the programs of Mattern and Fünfrocken's section 4; may be repeated",
    )
    add(
        "--relays",
        type=int,
        metavar="M",
        help="programs of M messages in all, each sent because of another one or by a process that "
        "sent before",
    )
    add(
        "--sample",
        type=int,
        metavar="N",
        help="with --relays: N programs, at random (--seed), with crossings as well; default: all",
    )
    add(
        "--kind",
        choices=("unicast", "multicast", "broadcast"),
        help="what messages there are; default: unicasts, if the protocol has them",
    )
    add(
        "--driver",
        choices=tuple(DRIVERS),
        help="packets: one packet at a time, sends inside deliveries; runs: the calls that a node "
        "makes, messages in runs; default: packets",
    )
    add("--option", action="append", default=[], metavar="K=V", help="an option of the protocol")
    add(
        "--property",
        action="append",
        choices=PROPERTIES,
        metavar="WHAT",
        help=f"judge this alone, one of: {', '.join(PROPERTIES)}; may be repeated; default: all",
    )


def add_network_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("network")
    add = group.add_argument
    add("--network", choices=("fifo", "unordered"), help="default: what the protocol needs")
    add("--loss", type=int, default=0, metavar="N", help="up to N packets may be lost")
    add("--duplication", type=int, default=0, metavar="N", help="up to N packets may arrive twice")
    add(
        "--ticks",
        type=int,
        default=0,
        metavar="N",
        help="up to N calls of retransmit at any moment",
    )
    add(
        "--forgets",
        type=int,
        default=0,
        metavar="N",
        help="up to N times a process forgets another one, at any moment",
    )
    add(
        "--frozen",
        type=int,
        action="append",
        default=[],
        metavar="K",
        help="process K receives nothing; the others must not be delayed; may be repeated",
    )
    add(
        "--rounds",
        type=int,
        metavar="N",
        help="calls of retransmit by all when nothing else is left; default: enough for the losses",
    )


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how")
    add = group.add_argument
    add(
        "--search",
        choices=tuple(_ORDERS),
        default="bfs",
        help="all states, breadth or depth first; or random walks to the end",
    )
    add("--walks", type=int, default=1000, metavar="N", help="how many; default: 1000")
    add("--seed", type=int, default=0, metavar="S", help="of the walks; default: 0")
    add("--engine", choices=("auto", "python", "compiled"), default="auto", help="auto: by size")
    add(
        "--ghost",
        choices=("marked", "past", "plain"),
        default="marked",
        help="how causal order is watched: one message at a time, all at once, or not at all",
    )
    add(
        "--reductions",
        default=",".join(_USUAL),
        metavar="LIST",
        help=f"of {', '.join(REDUCTIONS)}; or all, or none; default: {','.join(_USUAL)}",
    )
    add(
        "--split",
        action="store_true",
        help="search once for each message that may be marked: more searches, and smaller ones",
    )
    add("--jobs", type=int, metavar="N", help="processes to search in; default: all cores")
    add("--memory", default="4G", metavar="SIZE", help="for all of them together; default: 4G")
    add("--checkpoint", metavar="FILE", help="keep results here, and go on from what is there")
    add("--keep-going", action="store_true", help="do not stop at the first program that fails")
    add("--master", metavar="URL", help="spread programs over Spark: spark://host:7077, ...")


def needs_directories(args: argparse.Namespace) -> None:
    """Refuse before the work what could not be written after it."""
    for name in ("trace", "draw", "regression", "checkpoint"):
        path = getattr(args, name)
        if path is not None and not Path(path).absolute().parent.is_dir():
            raise CommandError(f"--{name} {path}: there is no directory {Path(path).parent}")


def protocol_of(args: argparse.Namespace) -> Protocol:
    """Return the protocol that `--protocol` names, with the options of `--option`.

    That is one of the registry, a mutant, or MODULE:NAME for a `Protocol` in a module.
    """
    try:
        protocol = protocol_named(args.protocol) if ":" in args.protocol else find(args.protocol)
        return protocol.with_options(**dict(map(_option, args.option)))
    except LocalProtocolError as error:
        more = "" if args.option else ", the mutants of docs/counterexamples.md, and MODULE:NAME"
        raise CommandError(f"{error}{more}") from None


def units_of(args: argparse.Namespace) -> list[Unit]:
    """What there is to do, one unit for each program."""
    mutant = MUTANTS.get(args.protocol)
    protocol = protocol_of(args)
    reductions = _reductions(args.reductions)
    try:
        if mutant is not None and not _asked(args):
            programs, setup = [parse(mutant.program)], mutant.setup
        else:
            programs = _programs(args, protocol, symmetry="symmetry" in reductions)
            setup = Setup(
                protocol, len(programs[0]), _network(args, protocol), args.driver or "packets"
            )
        setup.endpoint(0)  # it must be possible to make one
    except (ProgramError, LocalProtocolError, TypeError) as error:
        raise CommandError(str(error)) from None
    for program in programs:
        _check_kind(program, protocol)
    _check_frozen(args.frozen, setup.processes)
    for name in ("walks", "jobs"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise CommandError(f"--{name} must be from 1 upward, not {value}")
    options = SearchOptions(
        ghost=args.ghost,
        engine=args.engine,
        order=_ORDERS[args.search],
        commuting="commuting" in reductions,
        merge_reactions="merge" in reductions,
        forget="forget" in reductions,
        prune="prune" in reductions,
        properties=tuple(args.property or PROPERTIES),
        memory=_bytes(args.memory),
        walks=args.walks,
        seed=args.seed,
    )
    units = [Unit(setup, program, options) for program in programs]
    if not args.split:
        return units
    if args.ghost != "marked":
        raise CommandError(f"--split is by the message that is marked: not with {args.ghost}")
    return [piece for unit in units for piece in with_m1(unit)]


def _asked(args: argparse.Namespace) -> bool:
    """Whether anything was said of programs or network; if not, a mutant has its own."""
    names = "program driver processes messages kind network loss duplication ticks rounds"
    names += " forgets frozen relays"
    return any(getattr(args, name) not in (None, 0, []) for name in names.split())


def _network(args: argparse.Namespace, protocol: Protocol) -> NetworkModel:
    for name in ("loss", "duplication", "ticks", "rounds", "forgets"):
        value = getattr(args, name)
        if value is not None and value < 0:
            raise CommandError(f"--{name} must be from 0 upward, not {value}")
    rounds = args.rounds
    if rounds is None:
        quiet = protocol.control_messages == ("null",)  # waits for its timer, loss or not
        rounds = 2 + args.loss if args.loss or quiet else 0
    return NetworkModel(
        fifo=args.network == "fifo" or (args.network is None and protocol.needs_fifo),
        loss=args.loss,
        duplicates=args.duplication,
        ticks=args.ticks,
        rounds=rounds,
        forgets=args.forgets,
        frozen=tuple(sorted(set(args.frozen))),
    )


def _programs(args: argparse.Namespace, protocol: Protocol, *, symmetry: bool) -> list[Program]:
    if args.program:
        given = [program for text in args.program for program in _read(text)]
        if len({len(program) for program in given}) > 1:
            raise CommandError("all programs must be of the same number of processes")
        return given
    processes = 3 if args.processes is None else args.processes
    if not 2 <= processes <= 6:
        raise CommandError(f"--processes must be from 2 to 6, not {processes}")
    if args.relays is not None:
        return _relays(args, processes)
    kind = args.kind or ("unicast" if protocol.unicast else "broadcast")
    if not getattr(protocol, kind):
        raise CommandError(f"{protocol.name} is for {_able(protocol)}, not for {kind}")
    make = {"unicast": unicasts, "multicast": multicasts, "broadcast": broadcasts}[kind]
    messages = "3" if args.messages is None else args.messages
    every = make(processes, _messages(messages, processes))
    return list(up_to_renaming(every) if symmetry else every)


def _read(text: str) -> list[Program]:
    """Return the program in a text or of that name, or those in a file of that name."""
    path = Path(text)
    if ">" in text or text in PROGRAMS:
        return [parse(text)]
    if not path.is_file():
        raise CommandError(
            f"--program {text}: no such file, and no program of that name: "
            f"{', '.join(PROGRAMS)}; or write one, such as '0>1,2; 1>2; 2>'"
        )
    lines = [line.partition("#")[0].strip() for line in path.read_text("utf-8").splitlines()]
    return [parse(line) for line in lines if line]


def _relays(args: argparse.Namespace, processes: int) -> list[Program]:
    if args.relays < 1 or (args.sample is not None and args.sample < 1):
        raise CommandError("--relays and --sample must be from 1 upward")
    if args.sample is None:
        if args.kind not in (None, "unicast"):
            raise CommandError("--relays lists unicasts; with --sample it takes --kind multicast")
        return list(all_relays(processes, args.relays))
    multicast = args.kind == "multicast"
    return list(sampled(processes, args.relays, args.sample, args.seed, multicast=multicast))


def _check_kind(program: Program, protocol: Protocol) -> None:
    """Refuse messages that the protocol cannot carry; a search would call that its failure."""
    for i, sends in enumerate(program):
        for to in [send.to for send in sends]:
            others = len(set(to) - {i})
            everybody = others == len(program) - 1
            if not (
                (protocol.broadcast and everybody)
                or (protocol.unicast and others < 2)
                or protocol.multicast
            ):
                raise CommandError(
                    f"{protocol.name} is for {_able(protocol)}: p{i} cannot send to "
                    f"{'+'.join(map(str, to))} of {len(program)} processes"
                )


def _check_frozen(frozen: Sequence[int], processes: int) -> None:
    for k in frozen:
        if not 0 <= k < processes:
            raise CommandError(f"--frozen must be from 0 to {processes - 1}, not {k}")


def _able(protocol: Protocol) -> str:
    kinds = ("unicast", "multicast", "broadcast")
    return " and ".join(kind for kind in kinds if getattr(protocol, kind))


def _messages(text: str, processes: int) -> tuple[int, ...]:
    try:
        counts = [int(word) for word in text.split(",")]
    except ValueError:
        raise CommandError(f"--messages takes a number, or one for each: not {text!r}") from None
    if len(counts) == 1:
        counts *= processes
    if len(counts) != processes or min(counts) < 0 or not any(counts):
        raise CommandError(f"--messages {text} does not fit {processes} processes")
    return tuple(counts)


def _reductions(text: str) -> Sequence[str]:
    if text in ("all", "none"):
        return REDUCTIONS if text == "all" else ()
    names = text.split(",")
    for name in names:
        if name not in REDUCTIONS:
            raise CommandError(f"--reductions takes {', '.join(REDUCTIONS)}, not {name!r}")
    return names


def _option(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise CommandError(f"--option takes K=V, not {text!r}")
    value = {"True": "true", "False": "false", "None": "null", "none": "null"}.get(value, value)
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value


def _bytes(text: str) -> int:
    units = {"K": 10, "M": 20, "G": 30}
    unit = units.get(text[-1:].upper())
    try:
        number = float(text[:-1])
        if unit is None or not 0 < number < 1e15:
            raise ValueError
    except ValueError:
        raise CommandError(f"--memory takes a size such as 500M or 4G, not {text!r}") from None
    return int(number * 2**unit)
