"""Workloads: who sends what to whom, when, and because of what."""

from ..settings import one_of
from .base import Action, Environment, Traffic, Workload
from .deployment import Deployment
from .flows import Pipeline, Relay, RequestReply
from .multicasts import Broadcast, Groups
from .replay import Replay
from .scatter import Hotspot, Uniform
from .services import Call, Microservices, Service

__all__ = [
    "KINDS",
    "Action",
    "Broadcast",
    "Call",
    "Deployment",
    "Environment",
    "Groups",
    "Hotspot",
    "Microservices",
    "Pipeline",
    "Relay",
    "Replay",
    "RequestReply",
    "Service",
    "Traffic",
    "Uniform",
    "Wake",
    "Workload",
    "workload",
]

_CLASSES: tuple[type[Workload], ...] = (
    Uniform,
    Hotspot,
    Pipeline,
    RequestReply,
    Relay,
    Microservices,
    Deployment,
    Broadcast,
    Groups,
    Replay,
)

KINDS: dict[str, type[Workload]] = {cls.kind: cls for cls in _CLASSES}
"""Every workload by its name."""

workload = one_of(*_CLASSES)
"""Reads a workload: one of these classes, or a table with its kind."""
