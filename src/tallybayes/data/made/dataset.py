"""A made table: plain columns, with what they are, what is to be predicted, and what is true about them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...base.canon import many, printable
from ...base.errors import SettingsError
from ...base.show import Page, Shown

_LONGEST = 40  # characters of an example value
_EXAMPLES = 3  # values of a column that the page shows


class Dataset(Shown, dict[str, list[Any]]):
    """A dict of columns, as every call of the package takes it, that knows its `target` and its `truth`.

    It is a dict like any other: `pandas.DataFrame(data)`, `polars.DataFrame(data)` and `pyarrow.table(data)` make a
    frame of it. None stands for a missing value.

    >>> days = {"sky": ["sunny", "rainy"], "play": ["yes", "no"]}
    >>> data = tb.datasets.Dataset(days, name="days", target="play", about="Two days.")
    >>> data
    days: 2 rows, target 'play'. Two days.
    column  values
    sky     'sunny', 'rainy'
    play    'yes', 'no'
    >>> data.rows, data.records()[0], data.features()
    (2, {'sky': 'sunny', 'play': 'yes'}, {'sky': ['sunny', 'rainy']})
    """

    def __init__(
        self,
        columns: Mapping[str, list[Any]],
        *,
        name: str,
        target: str | None,
        about: str,
        truth: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(columns)
        self.name = name
        self.target = target
        self.about = about
        self.truth: dict[str, Any] = dict(truth or {})

    __hash__ = None  # as of any dict

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (dict(self), self.name, self.target, self.about, self.truth)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.values()), []))

    def records(self) -> list[dict[str, Any]]:
        """The rows, a dict each."""
        return [dict(zip(self, values, strict=True)) for values in zip(*self.values(), strict=True)]

    def features(self) -> dict[str, list[Any]]:
        """The columns without the target: what a model is asked about."""
        return {name: column for name, column in self.items() if name != self.target}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the rows to a file that ends in .csv, .tsv, .jsonl or .parquet; the path."""
        from ...base.disk import write_atomically

        write_atomically(path, self.content(path))
        return Path(path)

    def content(self, path: str | os.PathLike[str] | None, form: str | None = None) -> bytes:
        """The bytes of a file of this name, or in this format. Words of a bag stand beside each other in a text."""
        import pyarrow as pa

        from ..columns import as_column
        from ..files.writer import output_format, row_writer

        try:
            form, packing = output_format(path, form)
        except SettingsError:
            raise SettingsError(
                f"the name {printable(os.fspath(path or ''))!r} does not say how to write a table",
                hint="let it end in .csv, .tsv, .jsonl or .parquet, packed as .csv.gz if you like.",
            ) from None
        sink = pa.BufferOutputStream()
        inner = pa.CompressedOutputStream(sink, packing) if packing else sink
        with row_writer(form, inner) as write:
            write({name: as_column(_flat(column, form)) for name, column in self.items()})
        if packing:
            inner.close()
        content: bytes = sink.getvalue().to_pybytes()
        return content

    def _page(self) -> Page:
        aim = "no target" if self.target is None else f"target {self.target!r}"
        lines = [
            [name, _some([printable(repr(v), _LONGEST) for v in dict.fromkeys(map(_hashable, column))])]
            for name, column in self.items()
        ]
        title = f"{self.name}: {many(self.rows, 'row')}, {aim}. {self.about}"
        return Page(title, [["column", "values"], *lines], left=2)


def _again(columns: dict[str, list[Any]], name: str, target: str | None, about: str, truth: Any) -> Dataset:
    return Dataset(columns, name=name, target=target, about=about, truth=truth)


def _some(values: list[str]) -> str:
    return ", ".join(values[:_EXAMPLES]) + (", …" if len(values) > _EXAMPLES else "")


def _hashable(value: Any) -> Any:
    return " ".join(value) if isinstance(value, list) else value


def _flat(column: list[Any], form: str) -> list[Any]:
    """A column as a file holds it: a bag is a list in Parquet, and a text of its words elsewhere."""
    return column if form == "parquet" else [_hashable(value) for value in column]
