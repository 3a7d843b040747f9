"""`causewire node`: send and receive messages in causal order over UDP."""

from __future__ import annotations

import argparse

from ..core.endpoint import LocalProtocolError
from ..node import command
from ..trace import TraceError
from .errors import CommandError

__all__ = ["configure", "run"]

configure = command.configure


def run(args: argparse.Namespace) -> int:
    try:
        return command.run(args)
    except (ValueError, RuntimeError, LocalProtocolError, TraceError) as error:
        raise CommandError(str(error)) from None
