"""The measures that trec_eval prints, by the names they have there and in the order of its own table."""

from __future__ import annotations

import difflib
import functools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeVar

import numpy as np

from metrics.aggregation import GEOMETRIC_MEAN, MEAN, Aggregation
from metrics.block import Floats
from metrics.conventions import Profile
from metrics.measure import Measure
from pipeline.errors import InputError

__all__ = ["VERSIONS", "Line", "lines_of"]

VERSIONS: Mapping[str, str] = MappingProxyType({"trec_eval": "9.0.4", "trec_eval_10": "10.0"})
"""The profiles whose output can be printed, and the versions of trec_eval that they stand for."""


@dataclass(frozen=True)
class Line:
    """A line that is printed for a query, for all of them, or for both.

    Attributes:
        name: its first field.
        kind: what stands in the last one: `tag`, the name of the output; `queries`, their number; `relevance`, the
            grades of the first documents; `sum` or `mean`, a value whose sum or mean all queries together have.
        measures: what is measured.
        combine: makes one value of several measures'.
        of_all: what is summed for all queries together, where it is another measure than that of each.
        length: of `relevance`, how many documents it shows.
    """

    name: str
    kind: Literal["tag", "queries", "relevance", "sum", "mean"]
    measures: tuple[Measure, ...] = ()
    combine: Callable[[Sequence[Floats]], Floats] = operator.itemgetter(0)
    of_all: Measure | None = None
    length: int = 0

    @property
    def aggregation(self) -> Aggregation:
        """The scale on which queries are averaged."""
        return self.measures[0].aggregation if self.kind == "mean" else MEAN

    @property
    def of_each(self) -> bool:
        """Whether queries have this line; a geometric mean is one of all queries only."""
        return self.kind == "relevance" or (bool(self.measures) and self.aggregation is not GEOMETRIC_MEAN)

    @property
    def needed(self) -> tuple[Measure, ...]:
        """The measures whose scores it takes."""
        return self.measures if self.of_all is None else (*self.measures, self.of_all)


_Real = TypeVar("_Real", int, float)
_New = Callable[..., Measure]  # a measure from a metric, its cutoff and parameters, at the level and by the profile
_Entry = Callable[[str, str, _New], list[Line]]  # the lines of a name, of what was written after its dot


def _fixed(kind: Literal["tag", "queries"]) -> _Entry:
    return lambda name, _written, _new: [Line(name, kind)]


def _sum(metric: str) -> _Entry:
    return lambda name, _written, new: [Line(name, "sum", (new(metric),))]


def _mean(metric: str) -> _Entry:
    return lambda name, _written, new: [Line(name, "mean", (new(metric),))]


def _cut(metric: str, usual: str = "5,10,15,20,30,100,200,500,1000") -> _Entry:
    def entry(name: str, written: str, new: _New) -> list[Line]:
        cutoffs = _distinct(_whole_numbers(written or usual))
        return [Line(f"{name}_{k}", "mean", (new(metric, k),)) for k in cutoffs]

    return entry


def _at_points(metric: str, parameter: str, usual: str) -> _Entry:
    def entry(name: str, written: str, new: _New) -> list[Line]:
        points = _distinct(_numbers(written or usual))
        return [Line(f"{name}_{point:.2f}", "mean", (new(metric, **{parameter: point}),)) for point in points]

    return entry


def _with_gains(metric: str) -> _Entry:
    def entry(name: str, written: str, new: _New) -> list[Line]:
        if written:
            raise ValueError("grades are gains here; write the gains into the judgments as grades")
        return [Line(name, "mean", (new(metric),))]

    return entry


def _with_persistence(metric: str, **given: float) -> _Entry:
    def entry(name: str, written: str, new: _New) -> list[Line]:
        if not written:
            return [Line(name, "mean", (new(metric, **given),))]
        parameter, _, value = written.partition("=")
        if parameter != "p" or "," in value:
            raise ValueError(f"only p is taken, as in {name}.p=0.8; grades are gains here")
        return [Line(f"{name}_{written}", "mean", (new(metric, **given, p=_numbers(value)[0]),))]

    return entry


def _num_rel(name: str, _written: str, new: _New) -> list[Line]:
    return [Line(name, "sum", (new("num_rel"),), of_all=new("num_rel", rel=1))]


def _relstring(name: str, written: str, _new: _New) -> list[Line]:
    length = int(_numbers(written)[0]) if written else 10
    return [Line(_named(name, written), "relevance", length=max(length, 0))]


def _utility(name: str, written: str, new: _New) -> list[Line]:
    worths = _numbers(written or "1,-1,0,0")
    if len(worths) != 4:
        raise ValueError(f"{len(worths)} coefficients where 4 are needed, as in {name}.1,-1,0,0")
    return [Line(_named(name, written), "mean", (new("utility", **dict(zip("abcd", worths, strict=True))),))]


def _eleven_points(name: str, written: str, new: _New) -> list[Line]:
    recalls = _numbers(written or _ELEVEN)[::-1]  # as they are added there, which is why this is not ap11
    measures = tuple(new("iprec", recall=recall) for recall in recalls)
    return [Line(_named(name, written), "mean", measures, lambda rows: np.mean(rows, axis=0))]


def _set_f(name: str, written: str, new: _New) -> list[Line]:
    square = _numbers(written)[0] if written else 1.0
    if square < 0:
        raise ValueError("the square of beta is at least 0")

    def combine(rows: Sequence[Floats]) -> Floats:  # f is rounded once, this as often as there
        precision, recall = rows
        return (square + 1) * precision * recall / np.where(precision > 0, square * precision + recall, 1.0)

    return [Line(_named(name, written), "mean", (new("p"), new("r")), combine)]


_ELEVEN = "0,.1,.2,.3,.4,.5,.6,.7,.8,.9,1"
_TABLE: Mapping[str, _Entry] = {
    "runid": _fixed("tag"),
    "num_q": _fixed("queries"),
    "num_ret": _sum("num_ret"),
    "num_rel": _num_rel,
    "num_rel_ret": _sum("tp"),
    "map": _mean("ap"),
    "gm_map": _mean("gmap"),
    "Rprec": _mean("rprec"),
    "bpref": _mean("bpref"),
    "recip_rank": _mean("rr"),
    "iprec_at_recall": _at_points("iprec", "recall", _ELEVEN),
    "P": _cut("p"),
    "relstring": _relstring,
    "recall": _cut("r"),
    "infAP": _mean("infap"),
    "gm_bpref": _mean("gm_bpref"),
    "Rprec_mult": _at_points("rprec_mult", "factor", ".2,.4,.6,.8,1,1.2,1.4,1.6,1.8,2"),
    "utility": _utility,
    "11pt_avg": _eleven_points,
    "binG": _mean("bing"),
    "G": _with_gains("g"),
    "dcg": _with_gains("dcg"),
    "ndcg": _with_gains("ndcg"),
    "ndcg_rel": _with_gains("ndcg_rel"),
    "Rndcg": _with_gains("rndcg"),
    "ndcg_cut": _cut("ndcg"),
    "map_cut": _cut("ap"),
    "relative_P": _cut("relative_p"),
    "success": _cut("success", "1,5,10"),
    "set_P": _mean("p"),
    "set_relative_P": _mean("relative_p"),
    "set_recall": _mean("r"),
    "set_map": _mean("set_map"),
    "set_F": _set_f,
    "num_nonrel_judged_ret": _sum("num_nonrel_judged_ret"),
    "rbp": _with_persistence("rbp", rel=1),  # whatever the level
    "rbp_resid": _with_persistence("rbp_resid"),
    "unj": _cut("unjudged", "5,10,20"),
}
_SINCE_10 = {"dcg", "rbp", "rbp_resid", "unj"}
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "official": tuple(_TABLE)[:12],
    "all_trec": tuple(name for name in _TABLE if name != "dcg"),
    "set": (
        *("runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "utility"),
        *("set_P", "set_recall", "set_relative_P", "set_map", "set_F"),
    ),
}
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def lines_of(names: Sequence[str], profile: Profile, *, level: int) -> tuple[Line, ...]:
    """The lines of these measures, in trec_eval's order.

    Args:
        names: as they stand after `-m`, such as `map`, `P.5,10` or `official`; the first parameters of a name hold.
        profile: one of `VERSIONS`.
        level: the least grade that is relevant.

    Raises:
        InputError: there is no such measure, or its parameters are wrong.
    """
    known = {name for name in _TABLE if profile.name == "trec_eval_10" or name not in _SINCE_10}
    wanted: set[str] = set()
    parameters: dict[str, str] = {}
    for text in names:
        name, dot, written = text.partition(".")
        if dot:
            parameters.setdefault(name, written)
        found = known.intersection(_GROUPS.get(name, (name,)))
        if not found or (dot and not written):
            close = difflib.get_close_matches(name, [*known, *_GROUPS], n=1)
            meant = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(_GROUPS)} and single ones"
            raise InputError(f"trec_eval {VERSIONS[profile.name]} as it is here has no measure '{text}'; {meant}")
        wanted |= found

    lines: list[Line] = []
    for name in (name for name in _TABLE if name in wanted):
        try:
            lines += _TABLE[name](name, parameters.get(name, ""), functools.partial(_measure, profile, level))
        except ValueError as error:
            raise InputError(f"{name}.{parameters[name]}: {error}") from None
    return tuple(lines)


def _measure(profile: Profile, level: int, metric: str, k: int | None = None, **given: float) -> Measure:
    """The metric's measure; what is relevant is by the level unless `rel` is given."""
    written = ",".join(f"{name}={value!r}" for name, value in given.items())
    measure = Measure.parse(f"{metric}({written}){'' if k is None else f'@{k}'}", profile)
    if level == 1 or "rel" in given or "rel" not in measure.parameters:
        return measure
    return _measure(profile, level, metric, k, **given, rel=level)


def _named(name: str, written: str) -> str:
    return f"{name}_{written}" if written else name


def _numbers(written: str) -> list[float]:
    texts = written.split(",")
    for text in texts:
        if not _NUMBER.fullmatch(text):
            raise ValueError(f"'{text}' is not a number")
    return [float(text) for text in texts]


def _whole_numbers(written: str) -> list[int]:
    """As C's atol has them: 23.4 is 23, and 1e2 is 1."""
    _numbers(written)
    return [int(float(re.split("[eE]", text)[0])) for text in written.split(",")]


def _distinct(numbers: Sequence[_Real]) -> list[_Real]:
    """The numbers in their order, for that is how they are printed."""
    if len(set(numbers)) < len(numbers):
        raise ValueError("a parameter stands twice")
    return sorted(numbers)
