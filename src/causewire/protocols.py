"""The protocols by name: `create` an endpoint, list `names`, `describe` one."""

from .core.registry import Protocol, create, describe, names

__all__ = ["Protocol", "create", "describe", "names"]
