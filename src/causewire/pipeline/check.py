"""The causal-order check on Spark, with the kernel of `causewire.check`.

    report = check_paths(["traces/"], master="local[*]")    # the same `Report`
    outcomes = check_files(spark, ["traces/"])              # a table of runs
    outcomes = check_dataframe(events)                      # the same, of any table of events
    violations(outcomes)                                    # a table of violations

Events are not shuffled where that can be avoided: tasks get a list of pieces of
Parquet files, read the columns that the kernel needs, and
return what they found. So the files have to be where the executors can read
them, under the same names. The shape of the data decides who gets what:

    many small runs     whole runs to a task
    a long run          stretches of time to a task, which reads on until what was
                        sent in its own has arrived
    of very many processes, or with very much in flight:
                        wide blocks of origins to a task, each of which reads all

Rows that are stored in no order in which they can be checked (several nodes'
files side by side; JSON lines, always) are put in order first: small runs each
by itself, after a shuffle by run, and long ones as `prepare` tells.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ..check import BadRow, Report
from ..check.assemble import SENT_TWICE
from ..trace import TraceError, trace_files
from ..trace.schema import SameSeqError
from ..trace.storage import absolute
from . import prepare
from .errors import PipelineError, reason
from .large import RESTARTED, check_large, check_ranges
from .limits import Limits
from .merge import merged, runs_of_pieces
from .namesakes import rows_with_seq, with_namesakes
from .outcomes import ERROR, ORDER, OUTCOME, error_of, folded, report_of, row_of, violations
from .pieces import Piece, by_process, layout, long_runs, without
from .ranges import TOO_OFTEN, Range, cut, rows_read
from .restarts import LOST, labels_of, resolved
from .session import parallelism, session
from .small import check_runs, check_small, check_spread
from .stretches import MUCH
from .tasks import described, spark_of
from .trouble import Trouble

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "Limits",
    "check_dataframe",
    "check_files",
    "check_paths",
    "check_runs",
    "outcomes_of",
    "violations",
]

Progress = Callable[[str], None]
T = TypeVar("T")

_TRACE_ERROR = f"{TraceError.__module__}.{TraceError.__qualname__}: "


def check_paths(
    paths: Sequence[str | os.PathLike[str]],
    *,
    master: str | None = None,
    examples: int = 10,
    limits: Limits | None = None,
    progress: Progress | None = None,
    scratch: str | os.PathLike[str] | None = None,
    strict: bool = False,
    config: Mapping[str, str] | None = None,
) -> Report:
    """Check the trace in these files and directories; the report is that of `check.check`.

    Args:
        paths: Files, directories, patterns and URLs that executors can read.
        master: The Spark master; by default that of the session at hand, or this machine.
        examples: How many violations to explain, and how many bad rows to describe.
        limits: The sizes that decide how the work is shared out.
        progress: Called with a line that says what is being done.
        scratch: Where long runs that have to be sorted are kept meanwhile; on a cluster,
            every executor has to see it.
        strict: Refuse rows that are there twice, instead of taking them once.
        config: Settings of Spark, if a session has to be started.

    Raises:
        TraceError: The trace cannot be read, is empty, or has a cycle.
        PipelineError: Spark failed.
    """
    files = _files(paths)  # before Spark starts, if there is something wrong with them
    with session(master, config=config) as spark:
        work = _Work(
            spark, examples, limits or Limits(), progress or (lambda _: None), scratch, strict
        )
        table = _outcomes(work, files)
    report = report_of(table, examples)
    if report.events == 0:
        raise TraceError(paths[0], None, "the trace is empty")
    return report


def check_files(
    spark: SparkSession,
    paths: Sequence[str | os.PathLike[str]],
    *,
    examples: int = 10,
    limits: Limits | None = None,
    scratch: str | os.PathLike[str] | None = None,
) -> DataFrame:
    """The outcome of each run in these files and directories, as `OUTCOME`.

    The work is done when this returns, and the errors are those of `check_paths`.
    """
    work = _Work(spark, examples, limits or Limits(), lambda _: None, scratch)
    return spark.createDataFrame(_outcomes(work, _files(paths)), spark_of(OUTCOME))


def check_dataframe(
    events: DataFrame,
    *,
    examples: int = 10,
    limits: Limits | None = None,
    scratch: str | os.PathLike[str] | None = None,
    strict: bool = False,
) -> DataFrame:
    """The outcome of each run of any table of events (Delta, Iceberg, ...), as `OUTCOME`.

    Rows may be in any order. A small run is checked by one task. A long one is sorted by
    Spark into a temporary directory, and checked there by many tasks, as files are.

    Args:
        events: Rows with the columns of a trace; those that may be missing may be missing.
        examples: How many violations to explain, and how many bad rows to describe.
        limits: The sizes that decide how the work is shared out.
        scratch: Where long runs are kept meanwhile; on a cluster, every executor has to see it.
        strict: Refuse rows that are there twice, instead of taking them once.

    Raises:
        TraceError: The rows are inconsistent, or have a cycle.
        PipelineError: Spark failed.
    """
    table = outcomes_of(events, examples=examples, limits=limits, scratch=scratch, strict=strict)
    return events.sparkSession.createDataFrame(table, spark_of(OUTCOME))


def outcomes_of(
    events: DataFrame,
    *,
    examples: int = 10,
    limits: Limits | None = None,
    progress: Progress | None = None,
    scratch: str | os.PathLike[str] | None = None,
    strict: bool = False,
    fold: bool = False,
) -> pa.Table:
    """The outcomes of `check_dataframe` here, as `OUTCOME`.

    Args:
        events: Rows with the columns of a trace.
        examples: How many violations to explain, and how many bad rows to describe.
        limits: The sizes that decide how the work is shared out.
        progress: Called with a line that says what is being done.
        scratch: Where long runs are kept meanwhile; on a cluster, every executor has to see it.
        strict: Refuse rows that are there twice, instead of taking them once.
        fold: Whether the outcomes of small runs are folded, as `outcomes.folded` does it.

    Raises:
        TraceError: The rows are inconsistent, or have a cycle.
        PipelineError: Spark failed.
    """
    tell = progress or (lambda _: None)
    spark = events.sparkSession
    work = _Work(spark, examples, limits or Limits(), tell, scratch, strict, fold)
    return _guarded(lambda: work.check_table(events))


def _files(paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    # Executors have a working directory of their own.
    return [absolute(str(file)) for file in trace_files(*paths)]


def _outcomes(work: _Work, files: Sequence[str]) -> pa.Table:
    try:
        return _guarded(lambda: work.check(files))
    except SameSeqError as error:
        found = error
    raise found.told(_guarded(lambda: rows_with_seq(work.spark, files, found)))


def _guarded(check: Callable[[], T]) -> T:
    """Return what `check` does; whatever Spark raises becomes a `PipelineError`."""
    try:
        return check()
    except (TraceError, PipelineError):
        raise
    except Exception as error:  # Py4J, gRPC and the JVM raise what they like
        told = reason(error)
        if _TRACE_ERROR in told:  # a task could not read its rows
            file, _, why = told.partition(_TRACE_ERROR)[2].partition(": ")
            raise TraceError(file, None, why) from None
        raise PipelineError(f"the check failed: {told}") from None


class _LeftOut(NamedTuple):
    """Rows of a run that were left out when it was sorted."""

    identical: int = 0
    repeated: int = 0
    rows: Sequence[BadRow] = ()
    lost: int = 0
    """Copies that were lost with a life of a process; these are destinations, not rows."""


class _UnorderedError(Exception):
    """The rows have to be put in order."""


class _RestartedError(_UnorderedError):
    """Processes were restarted, so destinations have to be resolved."""


class _Work:
    """One check."""

    def __init__(
        self,
        spark: SparkSession,
        examples: int,
        limits: Limits,
        tell: Progress,
        scratch: str | os.PathLike[str] | None,
        strict: bool = False,
        fold: bool = False,
    ) -> None:
        self.spark, self._examples, self._limits = spark, examples, limits
        self._tell, self._scratch, self._strict, self._fold = tell, scratch, strict, fold

    def check(self, files: Sequence[str]) -> pa.Table:
        """The outcomes of all runs."""
        table = self._checked(files)

        def read(columns: Sequence[str]) -> DataFrame:
            return prepare.read(self.spark, files, columns)

        return with_namesakes(table, read, self._examples)

    def _checked(self, files: Sequence[str]) -> pa.Table:
        if all(file.endswith(".parquet") for file in files):
            try:
                self._tell("checking")
                return self._as_stored(files)
            except _RestartedError:
                return self._carefully(files)
            except _UnorderedError:
                pass
        self._tell("sorting and checking")
        return self._sorted(files)

    # -- rows that are in order ------------------------------------------------------

    def _as_stored(self, files: Sequence[str]) -> pa.Table:
        pieces = layout(files)
        if by_process(pieces):
            raise _UnorderedError
        large = long_runs(pieces, self._limits.large)
        tables = []
        small = without(pieces, large)
        if small:
            table = check_small(
                self.spark, small, skip=large, examples=self._examples, limits=self._limits
            )
            tables.append(_untroubled(table))
        tables += [self._long_run(run, mine) for run, mine in large.items()]
        table = pa.concat_tables(tables) if tables else _table([])
        if len(table["run"].unique()) < table.num_rows:
            raise _UnorderedError  # a run is in two places
        if (pc.sum(table["events"]).as_py() or 0) < sum(piece.rows for piece in pieces):
            raise _UnorderedError  # a long run is in places where it was not looked for
        return table

    def _long_run(
        self,
        run: str,
        pieces: Sequence[Piece],
        left_out: _LeftOut | None = None,
    ) -> pa.Table:
        """Check a long run; `left_out` is known if its rows were sorted."""
        without = left_out or _LeftOut()
        self._tell(f"checking run {run!r}")
        try:
            report = check_large(
                self.spark,
                run,
                pieces,
                examples=self._examples,
                limits=self._limits,
                unique=left_out is not None,
                resolved=left_out is not None,
                identical=without.identical,
                repeated=without.repeated,
                repeated_rows=without.rows,
            )
        except Trouble as trouble:
            raise _error(trouble) from None
        report.lost = without.lost
        return _table([row_of(run, pieces[0].position, report)])

    # -- rows in any order --------------------------------------------------------------

    def _sorted(self, files: Sequence[str]) -> pa.Table:
        """Sort and check; first in the hope that nothing but the order is wrong.

        Then Java reads the files, sorts each long run once by its Lamport times, and the
        check verifies that it can rely on them. If it cannot, or a row is malformed, the
        rows are read again by Python, which says what is wrong with a row, and put in order
        with care (`prepare`).
        """
        if all(file.endswith(".parquet") for file in files):
            try:
                table = self._merged(layout(files))
            except _RestartedError:
                return self._carefully(files)
            except _UnorderedError:
                table = None
            if table is not None:
                return table
        quick = prepare.read_by_java(self.spark, files)
        if quick is not None and (table := self._sorted_quickly(quick)) is not None:
            return table
        return self._carefully(files)

    def _carefully(self, files: Sequence[str]) -> pa.Table:
        return self._sorted_rows(prepare.read(self.spark, files), careful=True)

    def _sorted_quickly(self, events: DataFrame) -> pa.Table | None:
        """Rely on Lamport times; None if that does not work, for whatever reason."""
        try:
            return self._sorted_rows(events, careful=False)
        except PipelineError:
            raise
        except Exception:  # whatever it was, the careful way says it better
            self._tell("sorting and checking with care")
            return None

    def check_table(self, events: DataFrame) -> pa.Table:
        """The outcomes of all runs of a table of events."""
        rows = prepare.completed(events)
        table = self._sorted_quickly(rows) if "lamport" in events.columns else None
        if table is None:
            table = self._sorted_rows(rows, careful=True)
        return with_namesakes(table, rows.select, self._examples)

    def _merged(self, pieces: Sequence[Piece]) -> pa.Table | None:
        """Check runs whose row groups have no other rows: files of nodes, mostly.

        Tasks read the files themselves. None if that is not possible.
        """
        runs = runs_of_pieces(pieces)
        if runs is None:
            return None
        sizes = {run: sum(piece.rows for piece in mine) for run, mine in runs.items()}
        large = {run: mine for run, mine in runs.items() if sizes[run] >= self._limits.large}
        small = {run: mine for run, mine in runs.items() if run not in large}
        tables = []
        if small:
            table = check_spread(
                self.spark,
                small,
                examples=self._examples,
                strict=self._strict,
                limits=self._limits,
            )
            tables.append(_untroubled(table))
        for run, mine in large.items():
            places = cut(mine, parallelism(self.spark), self._limits)
            if rows_read(places) > TOO_OFTEN * sizes[run]:
                return None
            tables.append(self._ranges(run, places))
        return pa.concat_tables(tables)

    def _ranges(self, run: str, places: Sequence[Range]) -> pa.Table:
        """Check a long run in files of nodes: as it is sorted, or after it was sorted."""
        self._tell(f"sorting and checking run {run!r}")
        try:
            report = check_ranges(
                self.spark, run, places, examples=self._examples, limits=self._limits
            )
            return _table([row_of(run, 0, report)])
        except Trouble as trouble:
            if trouble.what != MUCH:
                raise _error(trouble) from None
        folder = Path(tempfile.mkdtemp(prefix="causewire-sorted-", dir=self._scratch))
        try:
            self._tell(f"sorting run {run!r}")
            files = merged(self.spark, run, places, folder / "rows")
            return self._long_run(run, layout(files))
        except Trouble as trouble:
            raise _error(trouble) from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _sorted_rows(self, events: DataFrame, *, careful: bool) -> pa.Table:
        from pyspark.sql import functions as f

        long = f.when(f.col("count") >= self._limits.large, f.col("run"))
        sizes = events.groupBy("run").count().agg(f.count("*"), f.sort_array(f.collect_list(long)))
        runs, large = sizes.collect()[0]  # the driver gets the names of long runs, not of all
        tables = []
        if len(large) < runs:
            small = events.where(~events.run.isin(large)) if large else events
            checked = check_runs(small, examples=self._examples, strict=self._strict)
            if self._fold:
                fold = partial(folded, examples=self._examples)
                checked = checked.mapInArrow(fold, checked.schema)
            with described(self.spark, "check: whole runs"):
                tables.append(_untroubled(checked.toArrow().cast(OUTCOME)))
        sort = self._sort_and_check if careful else self._sort_once_and_check
        tables += [sort(events, run) for run in large]
        return pa.concat_tables(tables) if tables else _table([])

    def _sort_once_and_check(self, events: DataFrame, run: str) -> pa.Table:
        """A long run with Lamport times that can be relied on; `_UnorderedError` if not."""
        place = Path(tempfile.mkdtemp(prefix="causewire-sorted-", dir=self._scratch))
        try:
            self._tell(f"sorting run {run!r}")
            with described(self.spark, f"check: sort run {run}"):
                prepare.write(events.where(events.run == run), place / "rows", needed=True)
            pieces = layout([str(file) for file in trace_files(place / "rows")])
            return self._long_run(run, pieces)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _sort_and_check(self, events: DataFrame, run: str) -> pa.Table:
        """A long run: sorted into a directory of its own, and checked there."""
        place = Path(tempfile.mkdtemp(prefix="causewire-sorted-", dir=self._scratch))
        try:
            self._tell(f"sorting run {run!r}")
            every = self._kept(events.where(events.run == run), place / "every")
            prepare.refuse_second_starts(every)
            mine = every if self._strict else prepare.without_identical(every)
            identical = 0 if self._strict else every.count() - mine.count()
            lost = 0
            if labels := labels_of(mine):
                resolved(mine, labels).write.parquet(str(place / "resolved"))
                mine = self.spark.read.parquet(str(place / "resolved"))
                lost = mine.agg({LOST: "sum"}).collect()[0][0]
                mine = mine.drop(LOST)
            prepare.refuse_same_seq(mine)
            again = prepare.repeated_sends(mine).orderBy("process", "seq")
            many, first = again.count(), again.limit(self._examples).collect()
            ordered = prepare.ordered(prepare.without_repeated_sends(mine), place)
            prepare.write(ordered, place / "rows")
            rows = [BadRow(run, r.process, r.seq, r.origin, r.mid, SENT_TWICE) for r in first]
            pieces = layout([str(file) for file in trace_files(place / "rows")])
            return self._long_run(run, pieces, _LeftOut(identical, many, rows, lost))
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _kept(self, rows: DataFrame, place: Path) -> DataFrame:
        """Write rows of one run, which are asked for many times, so that they are read once."""
        with described(self.spark, "check: keep rows that are in no order"):
            rows.write.parquet(str(place))
        return self.spark.read.parquet(str(place))


def _error(trouble: Trouble) -> Exception:
    """Return what to raise for the trouble of a task."""
    if trouble.what == RESTARTED:
        return _RestartedError()
    return _UnorderedError() if trouble.what == ORDER else error_of(trouble.detail)


def _untroubled(table: pa.Table) -> pa.Table:
    """The same outcomes, if there is no trouble among them."""
    for row in table.filter(pc.is_valid(table["trouble"])).to_pylist():
        if row["trouble"] == ERROR:
            raise error_of(row["detail"])
        raise _UnorderedError
    return table


def _table(rows: Iterable[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), OUTCOME)
