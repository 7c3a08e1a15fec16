"""What the pages about exports say, in plain Python: JSON scored by hand, and the inputs of an ONNX graph."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any

import numpy as np

import tallybayes as tb
from tallybayes.data import encode
from tallybayes.data.sources import open_source


def part_by_hand(piece: dict[str, Any], value: Any, classes: int) -> list[float]:
    """What docs/model_file.md says, in plain Python."""
    none, form = [0.0] * classes, piece["form"]
    if piece["kind"] == "gap":
        value = "yes" if value is None or value in piece["of"]["missing"] else "no"
    if form == "pair":
        places = []
        for side, own in zip(piece["sides"], value, strict=True):
            if own is None or ("values" in side and own not in side["values"]):
                return none
            place = side["values"].index(own) if "values" in side else bisect_right(side["cuts"], own)
            places.append(side["places"][place] if "places" in side else place)
        return piece["logs"][places[0]][places[1]]
    if value is None:
        return none
    if form == "blend":
        each = [(own["share"], part_by_hand({**piece, **own}, value, classes)) for own in piece["parts"]]
        return [sum(share * max(p[y] - max(p), -piece["most"]) for share, p in each) for y in range(classes)]
    if form == "table":
        known = dict(zip(piece["values"], piece["logs"], strict=True))
        return known.get(value, piece["unseen"])
    if form == "steps":
        return piece["logs"][bisect_right(piece["starts"], value)]
    if form in ("normal", "student"):
        total = list(none)
        values = [value] if "positions" not in piece else [value[p] for p in piece["positions"]]
        for i, x in enumerate(values if piece["location"] else []):
            for y in range(classes) if x is not None and x == x else ():
                z, scale = (x - piece["location"][i][y]) / piece["scale"][i][y], piece["scale"][i][y]
                if form == "normal":
                    total[y] += -0.5 * min(abs(z), 1e150) ** 2 - math.log(scale) - 0.5 * math.log(2 * math.pi)
                else:
                    v = piece["freedom"][i][y]
                    total[y] += math.lgamma((v + 1) / 2) - math.lgamma(v / 2) - 0.5 * math.log(v * math.pi)
                    total[y] += -math.log(scale) - (v + 1) / 2 * math.log1p(min(abs(z), 1e150) ** 2 / v)
        return total
    if form == "poisson":
        return none if value < 0 else [value * math.log(r) - r for r in piece["rate"]]
    amounts: dict[str, float] = value
    if form == "words":
        logs = dict(zip(piece["words"], piece["logs"], strict=True))
        rows = [(1 if piece["once"] else n, logs.get(w, piece["unseen"])) for w, n in amounts.items()]
        return [sum(n * row[y] for n, row in rows) for y in range(classes)]
    if form == "presence":
        rows = [
            p if w in amounts else a for w, p, a in zip(piece["words"], piece["present"], piece["absent"], strict=True)
        ]
        return [sum(row[y] for row in rows) for y in range(classes)]
    assert form == "levels"
    top = len(piece["logs"]) - 1
    rows = [piece["logs"][int(min(amounts.get(w, 0), top))][i] for i, w in enumerate(piece["words"])]
    return [sum(row[y] for row in rows) for y in range(classes)]


def proba_by_hand(scorer: dict[str, Any], row: dict[str, Any]) -> list[float]:
    score = list(scorer["log_prior"])
    for piece in scorer["columns"]:
        own = piece["of"]["name"] if "of" in piece else piece["name"]
        value = [row[side["name"]] for side in piece["sides"]] if "sides" in piece else row[own]
        part = part_by_hand(piece, value, len(score))
        weight = piece["weight"]
        if "length_exponent" in piece:
            weight *= max(sum((value or {}).values()), 1) ** piece["length_exponent"]
        score = [s + weight * p if weight else s for s, p in zip(score, part, strict=True)]
    top = max(score)
    if "lead" in scorer and sum(s > -math.inf for s in score) > 1:
        lead = max(top - sorted(score)[-2], scorer["lead"]["least"])
        factor = scorer["lead"]["scale"] * lead ** scorer["lead"]["exponent"]
        score = [top + factor * (s - top) for s in score]
    total = sum(math.exp(s - top) for s in score)
    return [math.exp(s - top) / total for s in score]


def plain_rows(rows: Any, under: tb.Schema) -> list[dict[str, Any]]:
    """The rows as the columns of a schema see them: parts of dates, words and how often, None for missing."""
    batch = next(open_source(rows).batches())
    blocks = encode.bags(encode.blocks(under, batch))
    out = []
    for i in range(batch.rows):
        row: dict[str, Any] = {}
        for name, block in blocks.items():
            column, own = under[name], block.take(np.array([i]))
            if column.kind == "category":
                row[name] = block.text(i)
            elif column.about.words:
                words = [own.slots[j] for j in own.matrix.indices]  # type: ignore[attr-defined]
                row[name] = dict(zip(words, own.matrix.data.tolist(), strict=True)) if own.has[0] else None  # type: ignore[attr-defined]
            elif column.of is None:
                value = own.values[0].tolist()  # type: ignore[attr-defined]
                row[name] = None if value != value else value
        out.append(row)
    return out


def inputs_of(rows: dict[str, Any], under: tb.Schema) -> dict[str, Any]:
    blocks: Any = encode.blocks(under, next(open_source(rows).batches()))
    return {
        name: block.values
        if hasattr(block, "values")
        else np.array([block.text(i) or "" for i in range(block.rows)], object)
        for name, block in blocks.items()
    }
