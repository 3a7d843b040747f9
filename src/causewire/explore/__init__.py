"""The explorer: a local web page on which a trace can be looked at and asked about.

    from causewire.explore import explore

    with explore("run.parquet") as server:
        print(server.url)
        server.serve_forever()

`causewire explore` does this from the command line. It needs numpy and pyarrow
(`pip install "causewire[trace]"`) and a browser, and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ..trace import Trace, open_trace
from .api import Api
from .dataset import Dataset, InputRemarks
from .endpoints import EndpointStates
from .server import ExploreServer

__all__ = ["Api", "Dataset", "EndpointStates", "ExploreServer", "InputRemarks", "explore"]


def explore(
    source: str | os.PathLike[str] | Trace | Callable[[], Trace],
    *,
    title: str | None = None,
    follow: Sequence[Path] = (),
    port: int = 0,
    endpoints: EndpointStates | None = None,
    run: str | None = None,
    remarks: Callable[[], InputRemarks] = InputRemarks,
) -> ExploreServer:
    """Return a server whose page shows a trace; `serve_forever` runs it.

    The trace is read in the background, so the page can be opened at once.

    Args:
        source: A file or directory, an open trace, or a function that opens it.
        title: What the page calls the trace.
        follow: Files or directories whose growth makes the trace be read again.
        port: The port to listen on; 0 takes a free one.
        endpoints: States of the endpoints, if the trace is a counterexample.
        run: The run to show first; by default the first one with a violation.
        remarks: Returns what there is to say about the input, for instance rows that were not
            understood; called each time that the trace has been read.

    Raises:
        TraceError: There is no such trace, or it is of a form that cannot be read.
        OSError: The port is taken.
    """
    if isinstance(source, (str, os.PathLike)):
        path = source
        opened: Callable[[], Trace] = lambda: open_trace(path, tolerate_cut=bool(follow))  # noqa: E731
        name = opened().name
    elif isinstance(source, Trace):
        trace = source
        name, opened = trace.name, lambda: trace
    else:
        opened = source
        name = opened().name
    dataset = Dataset(
        opened, title or name, follow=follow, endpoints=endpoints, run=run, remarks=remarks
    )
    server = ExploreServer(Api(dataset), port)
    dataset.start()
    return server
