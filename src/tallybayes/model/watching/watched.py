"""What a watch has counted: the counters, the report that people read, and the text that Prometheus reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ...base.canon import many, printable
from ...base.errors import SettingsError
from ...base.show import Page, Shown
from .learnt import Outside

_MOST = 100  # columns and classes with a line of their own
_LONGEST = 128  # characters of a label
OTHERS = "(others)"
# every metric: its name without the prefix, its type, what it is
METRICS = {
    "rows_total": ("counter", "Rows that were seen."),
    "failed_calls_total": ("counter", "Calls that were refused with an error."),
    "answers_total": ("counter", "Rows by the class that was answered."),
    "judged_rows_total": ("counter", "Rows whose probabilities were looked at."),
    "unsure_rows_total": ("counter", "Rows of these whose likeliest class was not likely enough."),
    "missing_total": ("counter", "Rows without a value, by column."),
    "unseen_total": ("counter", "Rows with a value that was never learnt, by column."),
    "beyond_total": ("counter", "Rows with a number beyond the range learnt, by column and side."),
    "odd_cells_total": ("counter", "Cells that could not be read, by column."),
    "model_rows": ("gauge", "Rows that the model has counted."),
}


@dataclass
class Counters:
    """What a watch has counted."""

    rows: int = 0
    failed: int = 0  # calls that were refused with an error
    judged: int = 0  # rows whose probabilities were looked at
    unsure: int = 0  # those of them whose likeliest class was not likely enough
    answers: dict[str, int] = field(default_factory=dict)
    columns: dict[str, Outside] = field(default_factory=dict)

    def add(self, other: Counters) -> None:
        """Count what the other has counted, too."""
        self.rows += other.rows
        self.failed += other.failed
        self.judged += other.judged
        self.unsure += other.unsure
        for name, n in other.answers.items():
            self.answers[name] = self.answers.get(name, 0) + n
        for name, outside in other.columns.items():
            self.columns.setdefault(name, Outside()).add(outside)


@dataclass(frozen=True, repr=False)
class WatchReport(Shown):
    """What a watch has counted, as it was when asked. Print it."""

    counted: Counters
    unsure_below: float
    ranges: Mapping[str, str]  # of each number, what was learnt

    @property
    def table(self) -> list[dict[str, Any]]:
        """A dict for each column: column, missing, unseen, below, above, odd, and the range learnt."""
        each = self.counted.columns.items()
        return [{"column": name, **asdict(found), "learnt": self.ranges.get(name, "")} for name, found in each]

    def outside(self) -> str:
        """One line about values beyond what was learnt, column by column; empty if there were none."""
        told = []
        for name, found in self.counted.columns.items():
            far = found.below + found.above
            if far:
                told.append(f"{printable(name, 40)} {far:,} beyond {self.ranges[name]}")
            if found.unseen:
                told.append(f"{printable(name, 40)} {found.unseen:,} never seen")
        return "; ".join(told)

    def _page(self) -> Page:
        c = self.counted
        answers = sorted(c.answers.items(), key=lambda item: -item[1])
        shown = ", ".join(f"{printable(name, 20)} {n:,}" for name, n in answers[:6]) + (", …" if answers[6:] else "")
        lines = [["column", "missing", "never seen", "below", "above", "cannot be read", "learnt"]]
        for name, f in c.columns.items():
            figures = (f.missing, f.unseen, f.below, f.above, f.odd)
            if any(figures):
                lines.append(
                    [printable(name, 60), *(f"{n:,}" if n else "" for n in figures), self.ranges.get(name, "")]
                )
        if len(lines) == 1:
            lines = []
        known = sum(1 for f in c.columns.values() if f == Outside())
        foot = f"{many(known, 'other column')}: nothing to report" if lines and known else ""
        title = f"Watch: {many(c.rows, 'row')}"
        if c.judged:
            of = f" of {c.judged:,} judged" if c.judged < c.rows else ""
            title += f" · {shown} · {100 * c.unsure / c.judged:.1f} %{of} below {self.unsure_below:g}"
        if c.failed:
            title += f" · {many(c.failed, 'call')} refused"
        return Page(title, lines, left=(0, 6), indent=2, foot=foot)


def exposition(counted: Counters, model_rows: int, labels: Mapping[str, str]) -> str:
    """The text that a scraper reads. Which lines there are depends on the model alone, so that no counter vanishes."""
    for name in labels:
        if not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_]*", name) or name in ("column", "class", "side"):
            raise SettingsError(
                f"a label called {name!r}", hint="take letters, digits and _, and neither column, class nor side."
            )
    found: dict[str, list[tuple[dict[str, str], int]]] = {
        "rows_total": [({}, counted.rows)],
        "failed_calls_total": [({}, counted.failed)],
        "judged_rows_total": [({}, counted.judged)],
        "unsure_rows_total": [({}, counted.unsure)],
        "model_rows": [({}, model_rows)],
        "answers_total": [({"class": c}, n) for c, n in _few(counted.answers).items()],
    }
    columns = {name: asdict(outside) for name, outside in counted.columns.items()}
    for metric, what in (("missing_total", "missing"), ("unseen_total", "unseen"), ("odd_cells_total", "odd")):
        found[metric] = [({"column": c}, n) for c, n in _few({c: f[what] for c, f in columns.items()}).items()]
    sides = {side: _few({c: f[side] for c, f in columns.items()}) for side in ("below", "above")}
    found["beyond_total"] = [({"column": c, "side": side}, n) for side, each in sides.items() for c, n in each.items()]
    lines = []
    for name, (kind, what) in METRICS.items():
        lines += [f"# HELP tallybayes_{name} {what}", f"# TYPE tallybayes_{name} {kind}"]
        for own, n in found[name]:
            every = ",".join(f'{k}="{_escaped(v)}"' for k, v in {**labels, **own}.items())
            lines.append(f"tallybayes_{name}{'{' + every + '}' if every else ''} {n}")
    return "\n".join(lines) + "\n"


def _few(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts by names that may be labels; those of names that are cut to the same, or come too late, together."""
    out: dict[str, int] = {}
    for i, (name, n) in enumerate(counts.items()):
        short = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
        short = short if i < _MOST else OTHERS
        out[short] = out.get(short, 0) + n
    return out


def _escaped(value: str) -> str:
    r"""A label's value, of which half characters cannot be written.

    >>> print(_escaped('a "b" \\ c'))
    a \"b\" \\ c
    """
    text = str(value).encode("utf-8", "replace").decode()
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
