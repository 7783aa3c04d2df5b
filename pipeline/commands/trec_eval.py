"""The output of trec_eval, byte for byte: its names, order and lines.

Values are added in the order of the query ids as bytes, so that a mean between two figures of four decimals is rounded
as there.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import Literal, TypeVar

import numpy as np

from rankledger.metrics import conventional_scores
from rankledger.metrics.aggregation import GEOMETRIC_MEAN, MEAN, Aggregation, contributions
from rankledger.metrics.agreement import PREFERENCE_NAMES, preference_scores
from rankledger.metrics.block import Bools, Floats, JudgedBlock, sum_down
from rankledger.metrics.conventions import PROFILES, Conventions, Profile
from rankledger.metrics.gain import dcg, g, ndcg, ndcg_rel, rndcg
from rankledger.metrics.measure import Measure, external_measure
from rankledger.metrics.ranking import ap
from rankledger.pipeline.config.sources import OutputKey
from rankledger.pipeline.data.joined import Groups, JudgedOutput, Scores
from rankledger.pipeline.data.rankings import (
    JudgedPreferences,
    join_groups,
    join_preferences,
    join_qrels,
    read_z_scores,
)
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Sample
from rankledger.pipeline.inference.summary import IntervalRule, estimate
from rankledger.pipeline.inference.tables import Estimate
from rankledger.pipeline.scoring import score
from rankledger.pipeline.support.errors import InputError, likely
from rankledger.pipeline.support.parallel import Workers

VERSIONS: Mapping[str, str] = MappingProxyType({"trec_eval": "9.0.4", "trec_eval_10": "10.0"})
"""The profiles whose output can be printed, and the versions of trec_eval that they stand for."""


@dataclass(frozen=True)
class TrecLine:
    """Line of the output, of a query or of all."""

    name: str
    # `tag` is the name of the output, `queries` their number, `relevance` the grades of the first documents.
    kind: Literal["tag", "queries", "relevance", "sum", "mean"]
    measures: tuple[Measure, ...] = ()
    combine: Callable[[Sequence[Floats]], Floats] = operator.itemgetter(0)
    of_all: Measure | None = None  # summed for all queries together, if it is not the measure of each
    length: int = 0  # documents that `relevance` shows
    form: Literal["qrels", "qrels_jg", "prefs", ""] = "qrels"  # format of judgments that it needs; empty for any
    compute: Callable[[JudgedBlock], Floats] | None = None  # values of a block that no measure has

    @property
    def aggregation(self) -> Aggregation:
        return self.measures[0].aggregation if self.kind == "mean" else MEAN

    @property
    def of_each(self) -> bool:
        """True if queries have this line."""
        return self.kind == "relevance" or (bool(self.measures) and self.aggregation is not GEOMETRIC_MEAN)

    @property
    def needed(self) -> tuple[Measure, ...]:
        return self.measures if self.of_all is None else (*self.measures, self.of_all)


_Real = TypeVar("_Real", int, float)
_New = Callable[..., Measure]  # a measure from a metric, its cutoff and parameters, at the level and by the profile
_Entry = Callable[[str, str, _New], list[TrecLine]]  # the lines of a name, of what was written after its dot


def _fix_kind(kind: Literal["tag", "queries"]) -> _Entry:
    return lambda name, _written, _new: [TrecLine(name, kind, form="")]


def _value(kind: Literal["sum", "mean"], metric: str) -> _Entry:
    return lambda name, _written, new: [TrecLine(name, kind, (new(metric),))]


def _cut(metric: str, usual: str = "5,10,15,20,30,100,200,500,1000") -> _Entry:
    def entry(name: str, written: str, new: _New) -> list[TrecLine]:
        _numbers(written or usual)
        texts = (written or usual).split(",")  # as C's atol has them: 23.4 is 23, and 1e2 is 1
        cutoffs = _distinct([int(float(re.split("[eE]", text)[0])) for text in texts])
        return [TrecLine(f"{name}_{k}", "mean", (new(metric, k),)) for k in cutoffs]

    return entry


def _add_points(metric: str, parameter: str, usual: str) -> _Entry:
    def entry(name: str, written: str, new: _New) -> list[TrecLine]:
        points = _distinct(_numbers(written or usual))
        return [TrecLine(f"{name}_{point:.2f}", "mean", (new(metric, **{parameter: point}),)) for point in points]

    return entry


def _with_gains(metric: str, function: Callable[[JudgedBlock], Floats]) -> _Entry:
    def entry(name: str, written: str, new: _New) -> list[TrecLine]:
        if not written and metric:
            return [TrecLine(name, "mean", (new(metric),))]
        gains = dict(map(_gain, written.split(","))) if written else {}

        needs_relevant = new("num_rel").parameters["rel"] if metric == "rndcg" else None

        def compute(block: JudgedBlock) -> Floats:
            scores = function(_regrade(block, gains))
            return scores if needs_relevant is None else np.where(block.n_relevant(needs_relevant) > 0, scores, 0.0)

        line = _join_name(name, written)
        return [TrecLine(line, "mean", (external_measure(line),), compute=compute)]

    return entry


def _gain(written: str) -> tuple[float, float]:
    grade, _, gain = written.partition("=")
    if not grade.isdecimal() or not gain or _numbers(gain)[0] < 0:
        raise ValueError(f"'{written}' gives no grade a gain of at least 0, as in 1=3.5")
    return float(grade), _numbers(gain)[0]


def _regrade(block: JudgedBlock, gains: Mapping[float, float]) -> JudgedBlock:
    grades, judged = block.grades.copy(), block.judged_grades.copy()
    for grade, gain in gains.items():
        grades[block.grades == grade] = judged[block.judged_grades == grade] = gain
    return replace(block, grades=grades, judged_grades=-np.sort(-judged, axis=0))


def _group_entry(entry: _Entry) -> _Entry:
    return lambda name, written, new: [replace(line, form="qrels_jg") for line in entry(name, written, new)]


def _preference(kind: Literal["sum", "mean"]) -> _Entry:
    return lambda name, _written, _new: [TrecLine(name, kind, (external_measure(name),), form="prefs")]


def _with_persistence(metric: str, **given: float) -> _Entry:
    def entry(name: str, written: str, new: _New) -> list[TrecLine]:
        if not written:
            return [TrecLine(name, "mean", (new(metric, **given),))]
        parameter, _, value = written.partition("=")
        if parameter != "p" or "," in value:
            raise ValueError(f"the only parameter is p, as in {name}.p=0.8; grades are gains here")
        return [TrecLine(f"{name}_{written}", "mean", (new(metric, **given, p=_numbers(value)[0]),))]

    return entry


def _relstring(name: str, written: str, _new: _New) -> list[TrecLine]:
    length = int(_numbers(written)[0]) if written else 10
    return [TrecLine(_join_name(name, written), "relevance", length=max(length, 0))]


def _utility(name: str, written: str, new: _New) -> list[TrecLine]:
    worths = _numbers(written or "1,-1,0,0")
    if len(worths) != 4:
        raise ValueError(f"{len(worths)} coefficients where 4 are needed, as in {name}.1,-1,0,0")
    return [TrecLine(_join_name(name, written), "mean", (new("utility", **dict(zip("abcd", worths, strict=True))),))]


def _eleven_points(name: str, written: str, new: _New) -> list[TrecLine]:
    recalls = _numbers(written or _ELEVEN)[::-1]  # as they are added there, which is why this is not ap11
    measures = tuple(new("iprec", recall=recall) for recall in recalls)
    return [TrecLine(_join_name(name, written), "mean", measures, lambda rows: np.mean(rows, axis=0))]


def _set_f(name: str, written: str, new: _New) -> list[TrecLine]:
    square = _numbers(written)[0] if written else 1.0
    if square < 0:
        raise ValueError("the square of beta is at least 0")

    def combine(rows: Sequence[Floats]) -> Floats:  # f is rounded once, this as often as there
        precision, recall = rows
        return (square + 1) * precision * recall / np.where(precision > 0, square * precision + recall, 1.0)

    return [TrecLine(_join_name(name, written), "mean", (new("p"), new("r")), combine)]


def _yaap(name: str, _written: str, new: _New) -> list[TrecLine]:
    rel = new("ap").parameters["rel"]

    def compute(block: JudgedBlock) -> Floats:  # the metric adds up logarithms, which rounds otherwise
        summed = sum_down(ap.terms(block, rel=rel).terms)
        return np.asarray(np.log((1 + summed) / (1 + block.n_relevant(rel) - summed)))

    return [TrecLine(name, "mean", (external_measure(name),), compute=compute)]


_ANY_GAIN = 1e-300
_MULTIPLES = ".2,.4,.6,.8,1,1.2,1.4,1.6,1.8,2"
_ELEVEN = "0,.1,.2,.3,.4,.5,.6,.7,.8,.9,1"
_TABLE: Mapping[str, _Entry] = {
    "runid": _fix_kind("tag"),
    "num_q": _fix_kind("queries"),
    "num_ret": _value("sum", "num_ret"),
    "num_rel": lambda name, _written, new: [TrecLine(name, "sum", (new("num_rel"),), of_all=new("num_rel", rel=1))],
    "num_rel_ret": _value("sum", "tp"),
    "map": _value("mean", "ap"),
    "gm_map": _value("mean", "gmap"),
    "Rprec": _value("mean", "rprec"),
    "bpref": _value("mean", "bpref"),
    "recip_rank": _value("mean", "rr"),
    "iprec_at_recall": _add_points("iprec", "recall", _ELEVEN),
    "P": _cut("p"),
    "relstring": _relstring,
    "recall": _cut("r"),
    "infAP": _value("mean", "infap"),
    "gm_bpref": _value("mean", "gm_bpref"),
    "Rprec_mult": _add_points("rprec_mult", "factor", _MULTIPLES),
    "utility": _utility,
    "11pt_avg": _eleven_points,
    "binG": _value("mean", "bing"),
    "G": _with_gains("g", g),
    "dcg": _with_gains("dcg", dcg),
    "ideal_dcg": _with_gains("", lambda block: dcg(block.ideal())),
    "ndcg": _with_gains("ndcg", ndcg),
    "ndcg_rel": _with_gains("ndcg_rel", ndcg_rel),
    "Rndcg": _with_gains("rndcg", lambda block: rndcg(block, rel=_ANY_GAIN)),
    "ndcg_cut": _cut("ndcg"),
    "map_cut": _cut("ap"),
    "relative_P": _cut("relative_p"),
    "success": _cut("success", "1,5,10"),
    "set_P": _value("mean", "p"),
    "set_relative_P": _value("mean", "relative_p"),
    "set_recall": _value("mean", "r"),
    "set_map": _value("mean", "set_map"),
    "set_F": _set_f,
    "num_nonrel_judged_ret": _value("sum", "num_nonrel_judged_ret"),
    **{name: _preference("sum" if name.startswith("prefs_num") else "mean") for name in PREFERENCE_NAMES},
    "map_avgjg": _group_entry(_value("mean", "ap")),
    "P_avgjg": _group_entry(_cut("p")),
    "Rprec_mult_avgjg": _group_entry(_add_points("rprec_mult", "factor", _MULTIPLES)),
    "yaap": _yaap,
    "rbp": _with_persistence("rbp", rel=1),  # whatever the level
    "rbp_resid": _with_persistence("rbp_resid"),
    "unj": _cut("unjudged", "5,10,20"),
}
_SINCE_10 = {"dcg", "ideal_dcg", "rbp", "rbp_resid", "unj"}
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "official": tuple(_TABLE)[:12],
    "all_trec": tuple(name for name in _TABLE if not re.fullmatch("(ideal_)?dcg|yaap|prefs_.*|.*_avgjg", name)),
    "all_prefs": ("runid", "num_q", *PREFERENCE_NAMES),
    "prefs": ("runid", "num_q", *PREFERENCE_NAMES[:6]),
    "qrels_jg": ("runid", "num_q", "map_avgjg", "P_avgjg", "Rprec_mult_avgjg"),
    "set": (
        *("runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "utility"),
        *("set_P", "set_recall", "set_relative_P", "set_map", "set_F"),
    ),
}
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def trec_lines(names: Sequence[str], profile: Profile, *, level: int, form: str) -> tuple[TrecLine, ...]:
    """Return the lines of measures in trec_eval's order.

    `names` are as after `-m`, such as `map`, `P.5,10` or `official`. The first parameters of a name count.

    Raises:
        InputError: A measure is unknown, its parameters are wrong, or it needs another format.
    """
    names_here = {name for name in _TABLE if profile.name == "trec_eval_10" or name not in _SINCE_10}
    chosen: set[str] = set()
    parameters: dict[str, str] = {}
    for text in names:
        name, dot, written = text.partition(".")
        if dot:
            parameters.setdefault(name, written)
        matches = names_here.intersection(_GROUPS.get(name, (name,)))
        if not matches or (dot and not written):
            meant = "all_trec" if name == "all_qrels" else name  # as trec_eval's own help says
            choices = sorted(names_here | {*_GROUPS})
            hint = f"; did you mean {meant!r}?" if meant in choices else likely(name, choices)
            hint = hint or f"; there are {', '.join(_GROUPS)} and single ones"
            raise InputError(f"trec_eval {VERSIONS[profile.name]} as it is here has no measure '{text}'{hint}")
        chosen |= matches

    lines: list[TrecLine] = []
    for name in (name for name in _TABLE if name in chosen):
        try:
            lines += _TABLE[name](name, parameters.get(name, ""), functools.partial(_measure, profile, level))
        except ValueError as error:
            raise InputError(f"{name}.{parameters[name]}: {error}") from None
    for line in lines:
        if line.form not in ("", form.removeprefix("qrels_") if form == "qrels_prefs" else form):
            raise InputError(f"{line.name} needs judgments in the format {line.form}: write -R {line.form}")
    return tuple(lines)


def _measure(profile: Profile, level: int, metric: str, k: int | None = None, **given: float) -> Measure:
    written = ",".join(f"{name}={value!r}" for name, value in given.items())
    measure = Measure.parse(f"{metric}({written}){'' if k is None else f'@{k}'}", profile)
    if level == 1 or "rel" in given or "rel" not in measure.parameters:
        return measure
    return _measure(profile, level, metric, k, **given, rel=level)


def _join_name(name: str, written: str) -> str:
    return f"{name}_{written}" if written else name


def _numbers(written: str) -> list[float]:
    texts = written.split(",")
    for text in texts:
        if not _NUMBER.fullmatch(text):
            raise ValueError(f"'{text}' is not a number")
    return [float(text) for text in texts]


def _distinct(numbers: Sequence[_Real]) -> list[_Real]:
    if len(set(numbers)) < len(numbers):
        raise ValueError("a parameter occurs twice")
    return sorted(numbers)


_FORMATS = {"relevance": "'%s'", "sum": "%d", "mean": "%6.4f"}
_MISSING_Z = -1_000_000.0  # what no mean and deviation are given for


@dataclass(frozen=True, eq=False)
class Printout:
    """Lines in the order in which they are printed, and the scores in them."""

    lines: tuple[TrecLine, ...]
    scores: Scores  # of the lines' measures, for every judged query
    relevance: Sequence[str]  # strings of the queries, if a line shows them
    complete: bool  # `-c`: all judged queries count, not only those with output
    # As in version 10 a query without output is one like any other. In version 9 it has no line and adds 0 to a mean.
    shows_missing: bool
    z_scores: Mapping[tuple[str, str], tuple[float, float]] | None = None  # `-Z`: mean and deviation by query and name

    @cached_property
    def counted(self) -> Bools:
        """Queries in the means, a (Q,) mask."""
        return np.ones(len(self.scores.missing), dtype=bool) if self.complete else ~self.scores.missing

    @cached_property
    def _rows(self) -> Mapping[Measure, Floats]:
        return dict(zip(self.scores.measures, self.scores.values, strict=True))

    def _values(self, line: TrecLine) -> Floats:
        values = line.combine([self._rows[measure] for measure in line.measures])
        return values if self.shows_missing or line.kind == "sum" else np.where(self.scores.missing, 0.0, values)

    def _make_addends(self, line: TrecLine) -> Floats:
        """Return the (Q,) addends of a mean. NaN counts as 0."""
        values = self._values(line)
        added, _ = contributions(line.aggregation, values, np.ones(len(values)), undefined_is_zero=True)
        added = added + 0.0  # -0.0 + 0.0 is 0.0, and C would print the sign
        if self.z_scores is None:
            return added
        moments = (self.z_scores.get((query_id, line.name)) for query_id in self.scores.query_ids)
        z_scores = np.array([_z_score(value, moment) for value, moment in zip(added.tolist(), moments, strict=True)])
        return z_scores if self.shows_missing else np.where(self.scores.missing, added, z_scores)

    def averaged(self) -> Scores:
        means = [line for line in self.lines if line.kind == "mean"]
        shape = (len(means), int(self.counted.sum()))
        values = [self._values(line)[self.counted] for line in means]
        return replace(
            self.scores,
            query_ids=self.scores.query_ids[self.counted],
            measures=tuple(line.measures[0] for line in means),
            values=np.array(values).reshape(shape),
            weights=np.ones(shape),
            figures={},
            missing=self.scores.missing[self.counted],
        )

    def of_each(self) -> Iterator[str]:
        shown = self.counted if self.shows_missing else ~self.scores.missing
        lines = [line for line in self.lines if line.of_each]
        columns = [
            [self.relevance[query] for query in np.flatnonzero(shown).tolist()]
            if line.kind == "relevance"
            else self._make_addends(line)[shown].tolist()
            for line in lines
        ]
        kinds = ["mean" if self.z_scores is not None and line.kind == "sum" else line.kind for line in lines]
        pairs = zip(lines, kinds, strict=True)
        template = "".join(f"{self._head(line)}\t\0\t{_FORMATS[kind]}\n" for line, kind in pairs)
        for query_id, *values in zip(self.scores.query_ids[shown], *columns, strict=True):
            yield template.replace("\0", query_id.replace("%", "%%")) % tuple(values)

    def of_all(self, tag: str, intervals: Sequence[Estimate] = ()) -> Iterator[str]:
        """Yield the lines of all queries together, with intervals if there are any."""
        ends = iter([f"\t{interval.ci_low:6.4f}\t{interval.ci_high:6.4f}" for interval in intervals])
        for line in self.lines:
            if line.kind != "relevance":
                interval = next(ends, "") if line.kind == "mean" else ""
                yield f"{self._head(line)}\tall\t{self._total(line, tag)}{interval}\n"

    def _head(self, line: TrecLine) -> str:
        is_value = line.kind not in ("tag", "relevance")
        return f"{'Z' if self.z_scores is not None and is_value else ''}{line.name:<22}"

    def _total(self, line: TrecLine, tag: str) -> str:
        n_queries = int(self.counted.sum())
        if line.kind in ("tag", "queries"):
            return tag if line.kind == "tag" else str(n_queries) if self.z_scores is None else f"{n_queries:6.4f}"
        added = self._make_addends(line)[self.counted]
        total = np.cumsum(added)[-1]
        if line.kind == "sum" and self.z_scores is not None:
            return f"{total:6.4f}"
        if line.kind == "sum":
            measure = line.of_all if line.of_all is not None and self.complete else line.measures[0]
            return f"{self._rows[measure][self.counted].sum():.0f}"
        return f"{line.aggregation.backward(total / n_queries):6.4f}"


def _list_judged(joined: JudgedOutput) -> Iterator[JudgedBlock]:
    return (block for block in joined.blocks if isinstance(block, JudgedBlock))


def _z_score(value: float, known: tuple[float, float] | None) -> float:
    if known is None:
        return _MISSING_Z
    mean, deviation = known
    if deviation:
        return (value - mean) / deviation
    return 0.0 if value == mean else _MISSING_Z


def _relevance_strings(joined: JudgedOutput, conventions: Conventions, length: int) -> list[str]:
    """Return the grades of each query's first documents as signs: `-` unjudged, `.` negative, `>` above 9."""
    strings = []
    for block in (conventional_scores.apply_conventions(block, conventions) for block in _list_judged(joined)):
        for query, n_retrieved in enumerate(block.n_retrieved):
            signs = ["-"] * min(length, int(n_retrieved))
            for rank, grade in zip(block.ranks[:, query], block.grades[:, query], strict=True):
                if rank <= len(signs):
                    signs[int(rank) - 1] = "." if grade < 0 else ">" if grade > 9 else f"{grade:.0f}"
            strings.append("".join(signs))
    return strings


def trec_eval(
    qrels: str,
    ranking: str,
    *,
    measures: Sequence[str] = (),
    profile: str = "trec_eval",
    each: bool = False,
    complete: bool = False,
    summary: bool = True,
    level: int = 1,
    depth: int | None = None,
    judged_only: bool = False,
    n_documents: int = 0,
    intervals: bool = False,
    form: str = "qrels",
    z_scores: str | None = None,
) -> Iterator[str]:
    """Yield the output of trec_eval in pieces.

    Args:
        qrels: Path of the judgments.
        ranking: Path of the ranking. `-` is standard input.
        measures: Names as after `-m`. By default `official`.
        profile: `trec_eval` or `trec_eval_10`.
        each, complete, summary, level, depth, judged_only, n_documents, form, z_scores: Options `-q`, `-c`, not `-n`,
            `-l`, `-M`, `-J`, `-N`, `-R` and `-Z`.
        intervals: True prints confidence intervals of means.

    Raises:
        InputError: A measure or a file is wrong, or no query is in both files.
    """
    if intervals and z_scores:
        raise InputError("an interval of z-scores is not printed; leave out -Z or --with-intervals")
    rules = PROFILES[profile]
    lines = trec_lines(measures or ("official",), rules, level=level, form=form)
    rules = rules.with_conventions(
        missing_queries="empty" if complete else "skip",
        unjudged_documents="condensed" if judged_only else "non_relevant",
        depth=depth,
    )
    workers = Workers()
    joined, scores, tag = _score_files(qrels, ranking, form, lines, rules, n_documents, workers)
    if scores.missing.all():
        raise InputError(f"{ranking}: none of its queries is judged in {qrels}; check that both files spell ids alike")
    lengths = [line.length for line in lines if line.kind == "relevance" and each]
    relevance = _relevance_strings(joined, rules.conventions, lengths[0]) if lengths else ()
    moments = read_z_scores(z_scores) if z_scores else None
    printout = Printout(lines, scores, relevance, complete, profile == "trec_eval_10", moments)
    if each:
        yield from printout.of_each()
    if summary:
        yield from printout.of_all(tag, _intervals(printout, rules, workers) if intervals else ())


def _score_files(
    qrels: str, ranking: str, form: str, lines: Sequence[TrecLine], rules: Profile, n_documents: int, workers: Workers
) -> tuple[JudgedOutput, Scores, str]:
    """Return the joined files, the scores of the lines' measures, and the name of the ranking."""
    if form.endswith("prefs"):
        joined, preferences, tag = join_preferences(qrels, ranking, rules.conventions, subgroups=form == "prefs")
        none = np.zeros((0, len(joined.query_ids)))
        empty = Scores("", "", joined.query_ids, (), none, none, {}, joined.missing)
        return joined, _with_rows(empty, _preferences(qrels, joined, preferences)), tag
    if form == "qrels":
        joined, tag = join_qrels(qrels, ranking, rules.conventions, n_documents=n_documents)
        groups = [joined]
    else:
        groups, tag = join_groups(qrels, ranking, rules.conventions, n_documents=n_documents)
    blocks = [conventional_scores.apply_conventions(block, rules.conventions) for block in _list_judged(groups[0])]
    computed = {
        line.measures[0]: np.concatenate([line.compute(block) for block in blocks]) for line in lines if line.compute
    }
    needed = dict.fromkeys(chain.from_iterable(line.needed for line in lines))
    outputs: dict[OutputKey, JudgedOutput] = {(qrels, str(number)): group for number, group in enumerate(groups)}
    scores = score(outputs, {qrels: [measure for measure in needed if measure not in computed]}, rules, workers)
    return groups[0], _with_rows(_mean(scores), computed), tag


def _mean(groups: Sequence[Scores]) -> Scores:
    """Average over the groups of judgments of each query. The first group has all queries."""
    first, *others = groups
    if not others:
        return first
    total, n_groups = np.nan_to_num(first.values), np.ones(len(first.query_ids))
    for scores in others:
        places = np.searchsorted(first.query_ids, scores.query_ids)
        total[:, places] += np.nan_to_num(scores.values)
        n_groups[places] += 1
    return replace(first, values=total / n_groups)


def _with_rows(scores: Scores, rows: Mapping[Measure, Floats]) -> Scores:
    values = np.vstack([scores.values, *rows.values()])
    return replace(scores, measures=(*scores.measures, *rows), values=values, weights=np.ones_like(values))


def _preferences(path: str, joined: JudgedOutput, preferences: Sequence[JudgedPreferences]) -> Mapping[Measure, Floats]:
    scores_of = []
    for query_id, judges in zip(joined.query_ids, preferences, strict=True):
        try:
            scores_of.append(preference_scores(*judges))
        except ValueError as error:
            raise InputError(f"{path}: query '{query_id}': {error}; fix its levels") from None
    return {external_measure(name): np.array([scores[name] for scores in scores_of]) for name in PREFERENCE_NAMES}


def _intervals(printout: Printout, rules: Profile, workers: Workers) -> tuple[Estimate, ...]:
    """Estimate with the defaults of a config. The same queries are drawn for files of any name."""
    from rankledger.pipeline.config.schema import Bootstrap, Config  # takes as long as all else

    bootstrap = Bootstrap()
    results = [replace(printout.averaged(), dataset="trec_eval")]
    settings = Settings(bootstrap.resamples, Config.model_fields["seed"].default, workers)
    sample = Sample(results, rules.conventions, Groups(), settings)
    return estimate(sample, results, rules.conventions, IntervalRule(bootstrap.method, bootstrap.confidence))
