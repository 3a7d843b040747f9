"""What the page can ask the server: one function for each question.

Every question names a data set (0 is the trace, others are replays) and a run
by number. Answers are JSON, or packed arrays for what is drawn.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import CausewireError
from ..report.names import shown
from .causes import waiting
from .dataset import Dataset, NotReadyError, RunView
from .extract import extract
from .faults import fault_spans
from .held import beyond
from .latency import histogram
from .packing import pack
from .questions import counterpart, described, event_words, related, violations
from .replay import candidates, replayed
from .state import state_at
from .times import duration
from .window import View, Window

__all__ = ["Answer", "Api", "BadRequestError"]


class BadRequestError(CausewireError):
    """A request that cannot be answered."""


class Answer(NamedTuple):
    """What goes back to the page."""

    body: bytes
    type: str = "application/json"
    status: int = 200
    filename: str = ""


Query = Mapping[str, str]


def _json(value: Any, status: int = 200) -> Answer:
    return Answer(json.dumps(value, allow_nan=False).encode(), status=status)


class Api:
    """Answers the questions of the page."""

    def __init__(self, dataset: Dataset) -> None:
        self.datasets = [dataset]
        self._lock = threading.Lock()
        self._get: dict[str, Callable[[Query], Answer]] = {
            "status": self._status,
            "run": self._run,
            "window": self._window,
            "overview": self._overview,
            "near": self._near,
            "select": self._select,
            "tell": self._tell,
            "relate": self._relate,
            "violations": self._violations,
            "latency": self._latency,
            "waiting": self._waiting,
            "find": self._find,
            "step": self._step,
            "extract": self._extract,
            "protocols": self._protocols,
            "same": self._same,
            "align": self._align,
        }

    def answer(self, method: str, name: str, query: Query) -> Answer:
        """Return the answer to a question; troubles are answers too."""
        try:
            if method == "POST" and name == "replay":
                return self._replay(query)
            if method == "GET" and name in self._get:
                return self._get[name](query)
            return _json({"error": "there is no such question"}, 404)
        except NotReadyError as error:
            return _json({"error": str(error), "wait": True}, 503)
        except BadRequestError as error:
            return _json({"error": str(error)}, 400)
        except LookupError as error:
            return _json({"error": str(error)}, 404)
        except CausewireError as error:
            return _json({"error": str(error)}, 422)

    # -- where the question is about ---------------------------------------------------

    def _dataset(self, query: Query) -> Dataset:
        number = _whole(query, "d", 0)
        if not 0 <= number < len(self.datasets):
            raise LookupError(f"there is no data set {number}")
        return self.datasets[number]

    def _of(self, query: Query) -> tuple[RunView, View]:
        run = self._dataset(query).run(_whole(query, "run", 0))
        return run, run.view(query.get("axis"))

    def _asked(self, query: Query, view: View) -> Window:
        return _asked(query, view.axis.end, len(view.run.processes))

    # -- questions ---------------------------------------------------------------------

    def _status(self, query: Query) -> Answer:
        return _json({"datasets": [dataset.status() for dataset in self.datasets]})

    def _run(self, query: Query) -> Answer:
        preview = self._dataset(query).preview
        if preview is not None:
            return _json(preview.run())
        run, view = self._of(query)
        data = run.data
        counts = np.diff(data.bounds)
        messages = len(np.unique(data.copies.send))
        control = [k for k, kind in enumerate(data.kinds) if kind in ("ack", "permit", "control")]
        return _json(
            {
                "name": shown(self._dataset(query).run_name(_whole(query, "run", 0))),
                "processes": data.shown,
                "events": counts.tolist(),
                "rows": len(data),
                "messages": messages,
                "control_per_message": float(np.isin(data.rows.kind, control).sum())
                / max(messages, 1),
                "copies": len(data.copies),
                "timed": data.timed,
                "axis": view.axis.name,
                "end": view.axis.end,
                "faults": [
                    {"process": f.process, "kind": shown(f.kind), "low": f.low, "high": f.high}
                    for f in fault_spans(data, view.axis)
                ],
            }
        )

    def _window(self, query: Query) -> Answer:
        preview = self._dataset(query).preview
        if preview is not None:
            about = preview.run()
            asked = _asked(query, about["end"], len(about["processes"]))
            facts, arrays = preview.window(asked)
        else:
            _, view = self._of(query)
            facts, arrays = view.answer(self._asked(query, view))
        return Answer(pack(facts, arrays), "application/octet-stream")

    def _overview(self, query: Query) -> Answer:
        bins = max(16, min(_whole(query, "pixels", 600), 2048))
        source = self._dataset(query).preview or self._of(query)[1]
        return Answer(pack({"bins": bins}, source.overview(bins)), "application/octet-stream")

    def _near(self, query: Query) -> Answer:
        """Find an event of a process: that nearest to a place, or the next one after a row."""
        run, view = self._of(query)
        data = run.data
        if "row" in query:
            row = self._row(query, "row", run)
            process = int(data.rows.process[row])
            place = int(data.place[row]) + _whole(query, "by", 1)
        else:
            process = _whole(query, "process", 0)
            if not 0 <= process < len(data.processes):
                raise LookupError("there is no such process")
            rows = data.by_process[data.bounds[process] : data.bounds[process + 1]]
            if not len(rows):
                raise LookupError(f"nothing happened at {data.shown[process]}")
            place = int(np.abs(view.axis.x[rows] - _number(query, "x", 0.0)).argmin())
        most = int(data.bounds[process + 1] - data.bounds[process]) - 1
        row = data.row_at(process, min(max(place, 0), most))
        copy = int(data.copies.of_row[row])
        return _json({"row": row, "copy": copy, "x": float(view.axis.x[row])})

    def _row(self, query: Query, name: str, run: RunView) -> int:
        row = _whole(query, name, -1)
        if not 0 <= row < len(run.data):
            raise LookupError("there is no such event")
        return row

    def _select(self, query: Query) -> Answer:
        run, view = self._of(query)
        copy = _whole(query, "copy", -1)
        if copy >= len(run.data.copies):
            raise LookupError("there is no such message")
        row = -1 if copy >= 0 and "row" not in query else self._row(query, "row", run)
        answer = described(run.data, view.axis, run.causality, row, copy)
        if copy >= 0 and view.axis.name == "time" and run.least is not None:
            words = beyond(float(view.parts.total[copy]), float(run.least[copy]))
            answer["sentences"] += [words] if words else []
        return _json(answer)

    def _tell(self, query: Query) -> Answer:
        """Say in a few words what an event or a message is, for a tooltip."""
        run, view = self._of(query)
        data, copy = run.data, _whole(query, "copy", -1)
        if "row" in query:
            return _json({"words": event_words(data, view.axis, self._row(query, "row", run))})
        if not 0 <= copy < len(data.copies):
            raise LookupError("there is no such message")
        message = data.message(int(data.copies.send[copy]))
        source, target = data.copies.source[copy], data.copies.target[copy]
        words = f"{message} from {data.shown[int(source)]} to {data.shown[int(target)]}"
        took = float(view.parts.total[copy])
        if not np.isfinite(took):
            words += ", never delivered"
        elif view.axis.name == "time":
            words += f", delivered after {duration(took)}"
        return _json({"words": words})

    def _relate(self, query: Query) -> Answer:
        run, view = self._of(query)
        a, b = self._row(query, "a", run), self._row(query, "b", run)
        return _json(related(run.data, view.axis, run.causality, a, b))

    def _violations(self, query: Query) -> Answer:
        run, view = self._of(query)
        dataset = self._dataset(query)
        report = dataset.report
        if report is None:
            return _json({"checked": bool(dataset.trouble), "trouble": dataset.trouble, "list": []})
        found = violations(run.data, view.axis, report)
        return _json({"checked": True, "total": report.violations, "list": found})

    def _latency(self, query: Query) -> Answer:
        run, view = self._of(query)
        window = self._asked(query, view)
        least = run.least if view.axis.name == "time" else None
        result = histogram(view.parts, view.chosen(window), least)
        return _json({**result, "axis": view.axis.name})

    def _waiting(self, query: Query) -> Answer:
        run, view = self._of(query)
        result = waiting(view, run.causes, self._asked(query, view))
        return _json({**result, "axis": view.axis.name})

    def _find(self, query: Query) -> Answer:
        """Find a message by its name, or an event by its process and `seq`."""
        run, view = self._of(query)
        data = run.data
        origin, _, number = query.get("q", "").strip().rpartition(":")
        names = {name: k for k, name in reversed(list(enumerate(data.shown)))}
        if origin not in names or not number.isdecimal() or len(number) > 18:
            raise BadRequestError("messages are named ORIGIN:NUMBER, such as p1:17")
        hits = data.copies_of(names[origin], int(number))
        if not len(hits):
            raise LookupError(f"there is no message {origin}:{number} in this run")
        copy = int(hits[0])
        return _json({"copy": copy, "x": float(view.axis.begins[copy])})

    def _same(self, query: Query) -> Answer:
        """Find the copy of another data set that is the same send to the same process."""
        run, _ = self._of(query)
        other = self._dataset({"d": query.get("other", "0")}).run(_whole(query, "other_run", 0))
        copy = _whole(query, "copy", -1)
        if not 0 <= copy < len(run.data.copies):
            raise LookupError("there is no such message")
        return _json({"copy": counterpart(run.data, copy, other.data)})

    def _align(self, query: Query) -> Answer:
        """Tell where two runs have come equally far: at the same share of their sends."""
        run, view = self._of(query)
        other = self._dataset({"d": query.get("other", "0")}).run(_whole(query, "other_run", 0))
        sides = [(run.data, view.axis), (other.data, other.view(view.axis.name).axis)]
        pairs = []
        for data, axis in sides:
            sends = np.sort(axis.x[np.unique(data.copies.send)])
            shares = np.linspace(0, max(len(sends) - 1, 0), min(len(sends), 1000))
            pairs.append(sends[shares.astype(np.int64)].tolist() if len(sends) else [])
        return _json(pairs if len(pairs[0]) == len(pairs[1]) else [[], []])

    def _step(self, query: Query) -> Answer:
        """Tell about one row of the causal order, and the state of all processes then."""
        run, view = self._of(query)
        row = min(max(_whole(query, "row", 0), 0), len(run.data) - 1)
        states = self._dataset(query).endpoints
        return _json(
            {
                "row": row,
                "rows": len(run.data),
                "x": float(view.axis.x[row]),
                "process": int(run.data.rows.process[row]),
                "copy": int(run.data.copies.of_row[row]),
                "words": event_words(run.data, view.axis, row),
                "state": state_at(run.data, row),
                "endpoints": None if states is None else states.after(run.data, row),
            }
        )

    def _extract(self, query: Query) -> Answer:
        run, view = self._of(query)
        body = extract(
            run.data,
            view,
            self._asked(query, view),
            [copy for copy in _list(query, "copies") if copy < len(run.data.copies)],
        )
        return Answer(body, "application/x-ndjson", filename="smallest.jsonl")

    def _protocols(self, query: Query) -> Answer:
        return _json({"protocols": candidates()})

    def _replay(self, query: Query) -> Answer:
        number = _whole(query, "run", 0)
        return _json({"d": self.replay(self._dataset(query), number, query.get("protocol", ""))})

    def replay(self, dataset: Dataset, run: int, protocol: str) -> int:
        """Replay a run under another protocol; return the number of the new data set.

        Raises:
            ReplayError: The run cannot be replayed so.
            LookupError: There is no such run.
        """
        ready = dataset.run(run)
        name = dataset.run_name(run)
        with self._lock:
            result = replayed(ready.data, ready.view("time"), dataset.trace(), name, protocol)
            self.datasets.append(result)
            return len(self.datasets) - 1


# -- values in a query ---------------------------------------------------------------------


def _whole(query: Query, name: str, otherwise: int) -> int:
    try:
        return int(query.get(name, otherwise))
    except ValueError:
        raise BadRequestError(f"{name} is not a whole number") from None


def _number(query: Query, name: str, otherwise: Any) -> Any:
    if name not in query:
        return otherwise
    try:
        value = float(query[name])
    except ValueError:
        raise BadRequestError(f"{name} is not a number") from None
    if not np.isfinite(value):
        raise BadRequestError(f"{name} is not finite")
    return value


def _list(query: Query, name: str) -> list[int]:
    try:
        return [int(part) for part in query.get(name, "").split(",") if part]
    except ValueError:
        raise BadRequestError(f"{name} is not a list of numbers") from None


def _asked(query: Query, end: float, processes: int) -> Window:
    """Return the window that a query is about; the whole run if it names none."""
    low, high = _number(query, "low", 0.0), _number(query, "high", end)
    if not low < high:
        high = low + 1.0
    return Window(
        low,
        high,
        _whole(query, "pixels", 1024),
        _lanes(query, processes),
        _number(query, "fastest", None),
        _number(query, "slowest", None),
        query.get("control") == "1",
    )


def _lanes(query: Query, processes: int) -> tuple[int, ...] | None:
    if "lanes" not in query:
        return None
    lanes = tuple(_list(query, "lanes"))
    if any(not 0 <= lane < processes for lane in lanes):
        raise BadRequestError("lanes has a process that is not there")
    return lanes
