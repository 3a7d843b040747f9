"""Is a trace causally ordered? One kernel, here and on a cluster.

    report = check("run.parquet")
    report.violations, report.examples[0].chain

`Kernel` checks one run for a block of origins, batch by batch; `scan` does so
for the runs of a trace, and `check` adds what people want to know.
"""

from .checker import check
from .columns import Chunk, Columns, Encoder, RunColumns
from .kernel import Kernel, OrderError
from .order import Sorted
from .report import BadRow, Link, MessageId, Report, Violation
from .scan import Scan, scan
from .source import Source, Stream

__all__ = [
    "BadRow",
    "Chunk",
    "Columns",
    "Encoder",
    "Kernel",
    "Link",
    "MessageId",
    "OrderError",
    "Report",
    "RunColumns",
    "Scan",
    "Sorted",
    "Source",
    "Stream",
    "Violation",
    "check",
    "scan",
]
