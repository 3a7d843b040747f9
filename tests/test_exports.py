"""What is public, and that nobody reaches past it.

Every public name of every public package is listed here, so that a new one is a
decision. A package of this project uses only the public names of another: it imports
no name and no module with a leading underscore, and reads no such attribute.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import causewire

ROOT = Path(causewire.__file__).parent

PUBLIC: dict[str, str] = {
    "causewire": """
        CausewireError Delivery Endpoint LocalProtocolError Node Packet RemoteProtocolError
        __version__ protocols
    """,
    "causewire.core": """
        Blocked CausewireError Delivery Endpoint Footprint LocalProtocolError MessageRun
        Packet ProtocolError RemoteProtocolError WORD_BITS Wait
    """,
    "causewire.protocols": """
        DEFAULT Protocol create describe names register
    """,
    "causewire.explore": """
        Api Dataset EndpointStates ExploreServer InputRemarks explore
    """,
    "causewire.metrics": """
        COPIES JOBS OCCUPANCY PROCESSES RUNS RunMetrics measure
    """,
    "causewire.durations": """
        DurationError UNITS format_duration parse_duration
    """,
    "causewire.node": """
        Claim Closed Config DeliveryFailed Event Full Held Message MessageBlocked
        MessageCancelled MessageExpired NameInUse Node NodeCutOff NodeError NodeRejoined
        NodeRenumbered NodeSuperseded NodeUnread PeerForgotten PeerGone PeerLeft PeerMoved
        PeerRefused PeerRestarted PeerSilent PeerUp Reason Receipt Superseded TraceFailed
        TransportConfig UnknownPeer VerificationFailed message_id run
    """,
    "causewire.kit": """
        Entered Group GroupClosed GroupMessage Interrupted JoinFailed Joined Kit KitError Left
        Member MessageId PeerLost Presence Request RequestFailed SecondGroup SeedFile
        Undecodable
    """,
    "causewire.blocking": """
        Node Receipt
    """,
    "causewire.transport": """
        Accepted Address Confirmed Delivered DropReason Event GiveUpAfter Handled MessageBlocked
        MessageWithdrawn NameInUse NodeCutOff NodeRejoined NodeRenumbered NodeSuperseded
        NodeUnread Observer
        PeerEvent PeerForgotten PeerGone PeerLeft PeerMoved PeerName PeerRefused PeerRestarted
        PeerSilent PeerStatus PeerUp
        Reason Room Session Stats Status Superseded TraceFailed Transport TransportConfig
        UnknownPeer VerificationFailed message_id varint
    """,
    "causewire.store": """
        Contents SqliteStore Store StoreError StoreFailed StoreInUse StoreRefused
    """,
    "causewire.trace": """
        DELIVER Event HELD HELD_FOR LANE NAMES RECEIVE RELEASE SEND ShivizLog Trace TraceBatch
        TraceError TraceWriter arrow_schema open_trace open_writer read_shiviz trace_files trace_of
        write_shiviz write_trace
    """,
    "causewire.check": """
        BadRow Chunk Columns Encoder Kernel Link MessageId OrderError Report RunColumns Scan
        Sorted Source Stream Violation check scan
    """,
    "causewire.sim": """
        Config Constant Crash Exponential Fault Freeze Heal Hold Jobs LogNormal Normal
        Partition Processes Regions Release SimulatedNetwork SimulationConfig
        SimulationError Sink Sizes Slow Summary Thaw Time Times Undelivered Uniform simulate
        workloads
    """,
    "causewire.verify": """
        Checker Checkpoint CheckpointError Counterexample EndpointError MUTANTS NetworkModel
        PROGRAMS PROPERTIES Program ProgramError Result SafetyViolation SearchOptions Setup Summary
        Unit WorkerLostError broadcasts check_unit find find_starvation multicasts parse
        run_units unicasts up_to_renaming written
    """,
    "causewire.pipeline": """
        PipelineError session
    """,
    "causewire.report": """
        Overtaking TimeWindow choose draw overtakings
    """,
    "causewire.testing": """
        Case Flying Network Oracle OracleViolation Outcome PROFILES Play Profile Reaction
        STUCK VARIANTS WRONG admits tolerated_networks command load narrate replay run runs shrink
    """,
}

REACHING_PAST: frozenset[str] = frozenset()
"""Offences that exist today. This list only ever gets shorter."""


@pytest.mark.parametrize("package", PUBLIC)
def test_public_names(package: str) -> None:
    module = import_module(package)
    assert sorted(module.__all__) == sorted(PUBLIC[package].split())
    for name in module.__all__:
        assert hasattr(module, name), f"{package}.{name} is listed and does not exist"


def test_every_public_package_is_listed() -> None:
    packages = {
        f"causewire.{path.name.removesuffix('.py')}"
        for path in ROOT.iterdir()
        if not path.name.startswith("_") and (path.suffix == ".py" or path.is_dir())
    }
    assert packages - INTERNAL <= PUBLIC.keys()
    assert packages >= INTERNAL


INTERNAL = {"causewire.cli", "causewire.demo"}
"""Packages that are programs: nobody is meant to import anything from them."""


CORE_MODULES = {
    "adaptive", "bss", "csps", "cykas", "endpoint", "errors", "fifo", "hybrid", "ks", "mf",
    "newtop", "pak", "payloads", "rst", "run", "saved", "sps",
}  # fmt: skip
"""Modules of `causewire.core` that other packages may import from: what all protocols have
in common, how they are saved, and the protocols themselves, with their packets, to build on."""


def test_other_modules_of_the_core_are_its_own_business() -> None:
    found = set()
    for module, path in modules():
        if owner(module) in ("causewire.core", "causewire.protocols"):
            continue
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom):
                source = imported_from(module, path, node).split(".")
                if source[:2] == ["causewire", "core"]:
                    used = source[2:3] or [alias.name for alias in node.names]
                    found |= {f"{module}: core.{name}" for name in used if is_module(name)}
    assert not found, "\n".join(sorted(found))


def is_module(name: str) -> bool:
    return name not in CORE_MODULES and (ROOT / "core" / f"{name}.py").exists()


# -- reaching past what is public -------------------------------------------------------


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text())))


def private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def owner(module: str) -> str:
    """The package, directly below `causewire`, that a module belongs to."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "causewire" else parts[0]


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(ROOT.rglob("*.py")):
        parts = ["causewire", *path.relative_to(ROOT).with_suffix("").parts]
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imported_from(module: str, path: Path, node: ast.ImportFrom) -> str:
    """The full name of the module that a statement imports from."""
    if not node.level:
        return node.module or ""
    base = module.split(".")
    drop = node.level - (path.name == "__init__.py")
    base = base[: len(base) - drop] if drop else base
    return ".".join([*base, *([node.module] if node.module else [])])


def private_imports() -> Iterator[str]:
    """Names and modules with a leading underscore that another package imports."""
    for module, path in modules():
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom):
                source = imported_from(module, path, node)
                names = [f"{source}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            yield from (f"{module}: {name}" for name in names if beyond(module, name))


def beyond(module: str, name: str) -> bool:
    """Whether a name is private to a package that a module is not part of.

    `causewire._compiled` is private to the whole project, and so open to all of it.
    """
    parts = name.split(".")
    return parts[0] == "causewire" and owner(name) != owner(module) and any(map(private, parts[2:]))


def own_private_names() -> dict[str, set[str]]:
    """For each package, the private names that it defines somewhere."""
    defined: dict[str, set[str]] = defaultdict(set)
    for module, path in modules():
        names = defined[owner(module)]
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                if isinstance(node.value, ast.Name) and node.value.id == "self":
                    names.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                names.add(node.value)  # `__slots__`
    return defined


STANDARD = {"_replace", "_asdict", "_make", "_fields"}
"""Public methods of named tuples, whatever they look like."""


def private_attributes() -> Iterator[str]:
    """Attributes with a leading underscore of things that are not the package's own."""
    defined = own_private_names()
    ours = set().union(*defined.values()) - STANDARD
    for module, path in modules():
        for node in nodes(path):
            if not isinstance(node, ast.Attribute) or not private(node.attr):
                continue
            if node.attr not in ours or node.attr in defined[owner(module)]:
                continue
            whose = node.value.id if isinstance(node.value, ast.Name) else "..."
            if whose in ("self", "cls"):  # of a base class, which may well be another's
                continue
            yield f"{module}: {whose}.{node.attr}"


def test_no_package_reaches_past_what_is_public_in_another() -> None:
    found = {*private_imports(), *private_attributes()}
    assert found <= REACHING_PAST, "\n".join(sorted(found - REACHING_PAST))
    assert found >= REACHING_PAST, "mended; strike it from the list: " + "\n".join(
        sorted(REACHING_PAST - found)
    )


def test_this_test_sees_what_it_should(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It notices each of the ways to reach past something."""
    for name, text in {
        "a/__init__.py": "_secret = 1\nclass A:\n    def __init__(self):\n        self._mine = 1\n",
        "b/__init__.py": "from ..a import _secret\n",
        "b/deep.py": "from ...causewire.a._module import thing\nimport causewire.a._module\n",
        "b/deeper.py": "def f(a):\n    return a._mine\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr("tests.test_exports.ROOT", tmp_path)
    assert {*private_imports(), *private_attributes()} == {
        "causewire.b: causewire.a._secret",
        "causewire.b.deep: causewire.a._module.thing",
        "causewire.b.deep: causewire.a._module",
        "causewire.b.deeper: a._mine",
    }
