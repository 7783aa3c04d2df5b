"""Checks of inputs: overlap of an output with its dataset, likely causes if it is too small, and odd contents.

An id that was read as a number, or has a prefix on one side only, matches nothing and scores 0, like a bad model.
Causes are found by writing the ids of both sides alike in one way after another.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from statistics import median
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankledger.metrics.conventions import Conventions
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import MOST_UNSCORED
from rankledger.pipeline.data import readers
from rankledger.pipeline.data.catalogue import Catalogue
from rankledger.pipeline.data.formats.layouts import plain_name
from rankledger.pipeline.data.join import judged_share, own_documents
from rankledger.pipeline.data.joined import Hits, JoinStats, RetrievedRanks, count_short
from rankledger.pipeline.data.judgments import Judgments, hash_pairs, match
from rankledger.pipeline.data.rows import Rows
from rankledger.pipeline.support.arrow import concatenate, strings
from rankledger.pipeline.support.errors import InputError

ALLOW_NO_OVERLAP = "or accept it with outputs: {path: …, allow_no_overlap: true}"
"""The end of the message on an output that shares no query, document or pair with its dataset."""
_OURS, _THEIRS = 10_000, 100_000  # ids of an output and of the dataset that are looked at for a cause
_LONGEST = 256  # characters of an id that is looked at
_SHOWN = 80  # characters of an id in a message
_FEW = 0.1  # of the queries
_HALF = 0.5
_HARDLY = 0.01  # of the top 10, or of the rows
_UNEQUAL = 0.03 - 1e-9  # shares of judged documents that differ by more decide one significant difference in five
_ENDS = 3  # models with the least, and with the greatest share that are named
_OF_JUDGED = frozenset({"bpref", "gm_bpref", "infap", "kendall_distance", "kendall_tau", "ap_corr", "rbp_resid"})
"""Metrics that pass over documents without a judgment, or say what these may be worth."""
_TIMES = 10  # that the other models have
_CUT = 1_000  # ids whose prefixes are looked at
_AFFIXED = 2  # ids with an affix, from which it is one
_BY_CHANCE = 0.05  # of the ids that match
_DISTANCE = re.compile(r"dist|loss|perplexity|ppl|nll|error|cost|^d$|^l[12]$")  # better if lower
_Rule = Callable[[str], str]
_Grouped = Sequence[tuple[str, str]]  # ids, each behind what it must match within, such as its query


def rename_by_content(contents: Mapping[str, str], known: Mapping[str, str]) -> tuple[dict[str, str], int]:
    """Match queries by their questions, if their ids do not match.

    Returns:
        New ids of queries whose content has another id there, and the number of ids with two contents. No id changes if
        no content has another id, as if a field differs from run to run.
    """
    differing = [
        query
        for query, content in contents.items()
        if known.get(query, content) != content and _field(known[query]) == _field(content)
    ]
    free: dict[str, list[str]] = {}
    for query, content in known.items():
        if contents.get(query) != content:
            free.setdefault(content, []).append(query)
    moved = [query for query, content in contents.items() if known.get(query) != content]
    ids = {query: free[contents[query]].pop(0) for query in moved if free.get(contents[query])}
    if not (differing and ids):
        return {}, len(differing)
    used = {*known}
    others = {query: f"{query} ({contents[query]})" for query in moved if query not in ids and query in used}
    return ids | others, len(differing)


def content_warning(contents: Mapping[str, str], n_differing: int, where: str, *, paired: bool) -> str:
    """Return the warning on ids that have another content elsewhere."""
    field = _field(next(iter(contents.values())))
    remedy = f"Queries are paired by {field}" if paired else f"Check that {field} is the same in both"
    return f"{n_differing:,} of {len(contents):,} query ids have another {field} than {where}. {remedy}"


def _field(content: str) -> str:
    return content.partition(" ")[0]


def refuse_other_queries(
    path: str, ours: Sequence[str], theirs: npt.NDArray[np.object_], *, what: str = "judged"
) -> None:
    """Reject an output that has no query of the dataset, whose ids (`theirs`) are ascending."""
    places = ((bisect_left(theirs, query_id), query_id) for query_id in ours)  # the first is found as a rule
    if any(place < len(theirs) and theirs[place] == query_id for place, query_id in places):
        return
    problem = f"{none_of(len(ours), 'queries')} is " + ("in the queries table" if what == "queries" else what)
    others = {"judged": "the judgments have", "rated": "the ratings have"}.get(what, "the table has")
    raise InputError(mismatch(path, problem, ours, theirs.tolist(), others))


def refuse_other_pairs(ratings: Judgments, predictions: Rows) -> NoReturn:
    """Reject predictions of which none has a rating, though some of their queries have ratings."""
    predicted, rated = _distinct(_documents(predictions, ratings)), _distinct(ratings.rows.doc_ids)
    problem = f"{none_of(len(predictions.query_codes), 'predictions')} has a rating"
    if set(predicted).isdisjoint(rated):
        raise InputError(mismatch(predictions.path, problem, predicted, rated, "the ratings have"))
    remedy = "its queries and documents are rated, but not together; predict the pairs of the test data"
    raise InputError(f"{predictions.path}: {problem}: {remedy}, {ALLOW_NO_OVERLAP}")


def find_unmatched(
    judgments: Judgments, catalogue: Catalogue, ranges: readers.RankingRanges
) -> tuple[str, pa.StringArray] | None:
    """Return the refusal and documents of a ranking without hits, None if the dataset knows some of these."""
    documents, judged = strings([]), judgments.rows.doc_ids
    for rows in ranges:
        documents = concatenate([documents, _documents(rows, judgments)]).unique()
    if not len(documents) or any_in(documents, concatenate([judged, catalogue.ids])):
        return None
    problem = f"{none_of(len(documents), 'documents')} is judged"
    refusal = mismatch(ranges.path, problem, _distinct(documents), _distinct(judged), "the judgments have")
    return refusal, documents


def likely_cause(ours: Sequence[str], theirs: Sequence[str]) -> tuple[str, str, str] | None:
    """Return an id of each side that would match if written alike, and the action. None if no way matches any."""
    matches = _likely_pairs([("", text) for text in ours], [("", text) for text in theirs])
    return matches and (*matches[0][0], matches[1])


def _likely_pairs(ours: _Grouped, theirs: _Grouped) -> tuple[list[tuple[str, str]], str] | None:
    ours = [own for own in ours[:_OURS] if len(own[1]) <= _LONGEST]
    theirs = [own for own in theirs[:_THEIRS] if len(own[1]) <= _LONGEST]
    most: list[tuple[str, str]] = []
    cause = ""
    for remedy, our_rule, their_rule in _spellings(ours, theirs):
        known = {(group, their_rule(text)): text for group, text in reversed(theirs)}
        pairs = [(text, known[key]) for group, text in ours if (key := (group, our_rule(text))) in known]
        if len(pairs) > len(most):
            most, cause = pairs, remedy
    return (most, cause) if most else None


def look_alikes(unmatched: Sequence[str], judgments: Judgments, hits: Hits) -> str:
    """Return a warning on queries and documents that match nothing, but would if written otherwise."""
    pairs = [(query, document) for text in unmatched for query, mark, document in [text.partition("\0")] if mark]
    queries = [text for text in unmatched if "\0" not in text]
    unanswered = judgments.query_ids[hits.n_retrieved == 0].tolist()
    notes = [similar_ids(queries, unanswered, "queries", "without output", len(hits.n_retrieved) - len(unanswered))]
    places = judgments.find([*dict.fromkeys(query for query, _ in pairs)])
    retrieved = [hits.judgment_rows[hits.ends[place] - hits.n_hits[place] : hits.ends[place]] for place in places]
    rows = judgments.rows_of(places)[:_THEIRS]
    rows = rows[~np.isin(rows, np.concatenate([*retrieved, rows[:0]]))]
    query_of = judgments.query_ids[judgments.queries_of(rows)].tolist()
    judged = [*zip(query_of, judgments.rows.take_doc_ids(rows).to_pylist(), strict=True)] if len(rows) else []
    notes.append(_similar(pairs, judged, "documents", "that are not retrieved", int(hits.n_hits.sum())))
    return " ".join(filter(None, notes))


def similar_ids(ours: Sequence[str], theirs: Sequence[str], what: str, absent: str, n_matching: int) -> str:
    """Return a warning on ids of both sides that would match if written otherwise. Empty if none."""
    return _similar([("", text) for text in ours], [("", text) for text in theirs], what, absent, n_matching)


def _similar(ours: _Grouped, theirs: _Grouped, what: str, absent: str, n_matching: int) -> str:
    matches = _likely_pairs(ours, theirs) if n_matching and ours and theirs else None
    by_chance = max(_AFFIXED, _BY_CHANCE * n_matching)  # `a` and `a.b` may both be ids
    if matches is None or (len(matches[0]) < by_chance and "the prefix" in matches[1]):
        return ""
    (text, other), remedy = matches[0][0], _spell_out(matches[1])
    like = f"look like judged ones {absent}, such as '{_spell_out(other[:_SHOWN])}' ({n_matching:,} match as they are)"
    return f"{len(matches[0]):,} {what} such as '{_spell_out(text[:_SHOWN])}' {like}. {remedy[:1].upper()}{remedy[1:]}."


def small_overlap(
    n_queries: int, quality: JoinStats, others: Iterable[JoinStats], *, n_judged: int | None = None
) -> str | None:
    """Return a warning on an output that has little in common with the dataset. None if it has enough."""
    reasons = []
    shared = n_queries - quality.n_missing_queries
    n_own = shared + quality.n_unjudged_queries
    if shared < _FEW * n_queries:
        reasons.append(f"{shared:,} of the dataset's {n_queries:,} queries are in the output")
    elif shared < _FEW * n_own and shared < _HALF * n_queries:
        reasons.append(f"{shared:,} of the output's {n_own:,} queries are the dataset's")
    judged, typical = quality.judged_at_10, 0.0
    if judged is not None and judged < _HARDLY:
        typical = median([stats.judged_at_10 for stats in others if stats.judged_at_10 is not None] or [0.0])
    if n_judged == 0 and quality.n_missing_queries < n_queries:
        reasons.append("none of the documents retrieved is judged for its query")
    elif judged is not None and judged < _HARDLY and typical > 0 and typical >= _TIMES * judged:
        reasons.append(f"{judged:.2%} of the top 10 is judged, and {typical:.2%} of the other models' (median)")
    return f"small overlap with the dataset: {'; '.join(reasons)}; check the ids" if reasons else None


def odd_rankings(n_queries: int, quality: JoinStats, judgments: Judgments, score: str = "") -> Iterator[str]:
    """Yield warnings on scores that may be ranks or distances, and on queries that find themselves."""
    n_own = n_queries - quality.n_missing_queries + quality.n_unjudged_queries
    if _DISTANCE.search(plain_name(score)):
        yield f"'{score}' is read as the score, and the highest comes first. Negate it if lower is better."
    is_rising = 0 < n_own == quality.n_rising and quality.n_rows >= max(2, n_own) + n_own
    if not score and (quality.rank_order or int(is_rising)) > 0:
        rise = "rise with the ranks beside them" if quality.rank_order else "of every query rise down the file"
        yield (
            f"the scores {rise}, and the highest comes first. If lower is better, negate them, or write "
            "columns: {rank: …} for ranks; else write columns: {score: …} with their column"
        )
    if quality.n_rounded > _HARDLY * quality.n_rows:
        yield (
            f"{quality.n_rounded:,} scores are equal in single precision alone, and count as tied. Set conventions: "
            "{score_precision: float64} to tell them apart."
        )
    if quality.n_self_first <= _HALF * n_own:
        return
    documents, places = own_documents(judgments.query_ids.tolist()), np.arange(n_queries)
    n_judged = len(
        match(judgments.pairs(places), documents, hash_pairs(documents, places))[0]
    )  # queries that judge themselves
    if n_judged <= _HALF * n_queries:
        yield (
            f"{quality.n_self_first:,} of {n_own:,} queries find the document of their own id first; if queries are "
            "documents, leave these out with exclude_self: true on the dataset"
        )


def short_lists(
    model: str,
    hits: Hits,
    judgments: Judgments,
    cutoffs: Mapping[int, str],
    others: Mapping[str, npt.NDArray[np.int64]],
    n_documents: float,
) -> str | None:
    """Return a warning on lists that end before a cutoff, None if hardly any do.

    They are short if other models have enough documents. If none has, they were cut if most are as long as the longest
    one, or were before documents were left out. A list with all judged documents of its query lost nothing.

    Args:
        model: Model of the output, with which it is not compared.
        hits: Hits of the output.
        judgments: Judgments of the dataset.
        cutoffs: A measure by its cutoff.
        others: (Q,) documents of each list, by model: of the baseline, or of all other models.
        n_documents: Documents in the catalog, NaN if unknown.
    """
    lengths, n_out = hits.n_retrieved, hits.quality.n_excluded_queries
    notes: list[str] = []
    n_lists, longest = int((lengths > 0).sum()), int(lengths.max(initial=0))
    loses = (lengths > 0) & (hits.n_hits < judgments.n_judged)
    for k, measure in sorted(cutoffs.items()):
        if not ((lengths > 0) & (lengths < k)).any():
            continue
        short = {
            count_short(lengths, other_lengths, k): f" where {name} has enough"
            for name, other_lengths in others.items()
            if name != model
        }
        (n, total), condition = max(short.items(), key=lambda item: item[0], default=((0, 0), ""))
        if not total and hits.ranks.size and not n_documents <= k:
            total, condition = n_lists, ""
            at_limit = lengths == longest if longest < k else lengths >= k
            if int(at_limit.sum()) + n_out > n_lists / 2:
                n = int((loses & (lengths < k) & (at_limit | (n_out > 0))).sum())
                n = n if longest < k else min(n, n_out)
        if n > MOST_UNSCORED * total:
            first = f"{n:,} of {total:,} queries{condition} have fewer than {k:,} documents, which {measure} asks for"
            notes.append(f"{n:,} fewer than {k:,}" if notes else first)
    more = f" ({', '.join(notes[1:])})" if notes[1:] else ""
    return f"{notes[0]}{more}. Write more documents, or compare at a smaller cutoff" if notes else None


def unequal_judging(
    outputs: Mapping[str, Sequence[RetrievedRanks]],
    measures: Iterable[Measure],
    pairs: Iterable[tuple[str, str]] | None,
    conventions: Conventions,
) -> Iterator[str]:
    """Yield a sentence for each cutoff at which compared models are judged unequally.

    There is none if unjudged documents do not count as irrelevant, or if all judged documents are relevant, because the
    judged share is then the precision itself. All models are compared if `pairs` is None.
    """
    parts = {}
    for model, retrieved_of in outputs.items():
        retrieved, grades = zip(*((ranked.hits, ranked.judgments.grades) for ranked in retrieved_of), strict=True)
        parts[model] = (
            np.concatenate([hits.ranks for hits in retrieved]),
            np.concatenate([each[hits.judgment_rows] for hits, each in zip(retrieved, grades, strict=True)]),
            np.concatenate([hits.n_retrieved for hits in retrieved]),
        )
    distinct = [np.unique(ranked.judgments.grades) for ranks in outputs.values() for ranked in ranks]
    judged = np.concatenate(distinct or [np.empty(0)])
    lowest = min((grade for grade in judged.tolist() if grade >= 0), default=math.inf)
    compared = None if pairs is None else [pair for pair in pairs if all(model in parts for model in pair)]
    counted = (
        measure
        for measure in measures
        if (measure.metric.input, conventions.unjudged_documents) == ("judged", "non_relevant")
        and not (measure.metric.code or measure.metric.direction == "neither" or measure.metric.name in _OF_JUDGED)
        and lowest < measure.parameters.get("rel", 1)
    )
    for depth in dict.fromkeys(min(measure.k or math.inf, conventions.depth or math.inf) for measure in counted):
        shares = {model: judged_share(*ranks, depth) or 0.0 for model, ranks in parts.items()}
        if compared is None:  # without a look at each of many pairs
            ends = min(shares.values(), default=0.0), max(shares.values(), default=0.0)
            unequal = {model for model, share in shares.items() if any(abs(share - end) >= _UNEQUAL for end in ends)}
        else:
            unlike = (pair for pair in compared if abs(shares[pair[0]] - shares[pair[1]]) >= _UNEQUAL)
            unequal = {model for pair in unlike for model in pair}
        if unequal:
            yield _judged_unequally(sorted((shares[model], model) for model in unequal), depth)


def _judged_unequally(shares: Sequence[tuple[float, str]], depth: float) -> str:
    first, *others = (f"{model}: {share:.0%}" for share, model in shares)
    if len(others) >= 2 * _ENDS:
        others[_ENDS - 1 : -_ENDS] = [f"{len(others) + 1 - 2 * _ENDS} more in between"]
    list_name = "list" if math.isinf(depth) else f"top {depth:g}"
    effect = "differences may be effects" if others[1:] else "the difference may be an effect"
    judged = f"{first} of its {list_name} is judged, {', '.join(others)}"
    return f"{judged}. Unjudged documents count as not relevant, so {effect} of judging."


def mismatch(
    path: str, found: str, ours: Sequence[str], theirs: Sequence[str], others: str, instead: str = ALLOW_NO_OVERLAP
) -> str:
    """Return one line on ids that match nothing: an id of each side, and the action."""
    text, their_text, remedy = likely_cause(ours, theirs) or (ours[0], theirs[0], "write the ids of both alike")
    ids = f"such as '{text[:_SHOWN]}'; {others} '{their_text[:_SHOWN]}': {remedy}"
    return f"{path}: {found}, {_spell_out(ids)}, {instead}"


def _spell_out(text: str) -> str:
    """Return a text with escapes for blanks other than the usual one, and for characters without width."""
    return "".join(
        ascii(sign)[1:-1] if sign != " " and unicodedata.category(sign) in ("Cf", "Zs") else sign for sign in text
    )


def none_of(n: int, things: str) -> str:
    """Return a subject such as `none of its 20 queries`."""
    return f"none of its {n:,} {things}" if n > 1 else f"none of its {things}"


def _spellings(ours: _Grouped, theirs: _Grouped) -> Iterator[tuple[str, _Rule, _Rule]]:
    for remedy, rule in _ALIKE.items():
        yield remedy, rule, rule
    for prefix in _prefixes(ours, theirs):
        yield f"remove the prefix '{prefix}'", partial(_remove_prefix, prefix), str
    for prefix in _prefixes(theirs, ours):
        yield f"add the prefix '{prefix}'", str, partial(_remove_prefix, prefix)


def _prefixes(longer: _Grouped, shorter: _Grouped) -> Iterator[str]:
    texts_of = {*shorter}
    cuts = (
        text[:cut]
        for group, text in longer[:_CUT]
        for cut in range(1, min(len(text), _SHOWN))
        if (group, text[cut:]) in texts_of and not (text[cut - 1].isdigit() and text[cut].isdigit())
    )
    yield from (prefix for prefix, _ in Counter(cuts).most_common(1))


def _remove_prefix(prefix: str, text: str) -> str:
    return text.removeprefix(prefix)


_EXPONENT = re.compile(r"\d(\.\d{1,15})?e\+?\d\d")
_ALIKE: Mapping[str, _Rule] = {
    "remove the whitespace around ids": str.strip,
    "write ids as text (pandas made floats of them)": lambda text: text.removesuffix(".0"),
    "write the leading zeros on both sides or on neither": lambda text: text.lstrip("0") or text[-1:],
    "write the letters of both in the same case": str.casefold,
    "write ids in one Unicode form (NFC)": partial(unicodedata.normalize, "NFC"),
    "write whole numbers without an exponent (R writes 100000 as 1e+05)": lambda text: (
        f"{float(text):.0f}" if _EXPONENT.fullmatch(text) else text
    ),
}


def _documents(rows: Rows, judgments: Judgments) -> pa.StringArray:
    places = judgments.find(rows.query_ids)
    return rows.take_doc_ids(np.flatnonzero(places[rows.query_codes] < len(judgments.query_ids)))


def any_in(documents: pa.StringArray, known: pa.StringArray) -> bool:
    """Return whether any of these documents is known."""
    return bool(pc.any(pc.is_in(documents, known)).as_py())


def _distinct(documents: pa.StringArray) -> list[str]:
    return documents.unique().to_pylist()  # type: ignore[no-any-return]


_MANY = 4  # distinct grades, none of them at 0 or below
_HIGH = 0.75  # of the way from the least to the greatest: 4 of 1 to 5, 8 of 1 to 10
_NAMED = 3  # measures
_LARGEST = 1e6  # of grades: counts of clicks stay below, times and most ids do not


def rating_like_relevance(judgments: Judgments, measures: Sequence[Measure], relevant: float | None) -> str | None:
    """Return a warning on judgments that look like ratings, if no threshold of relevance is set."""
    unsaid = [measure for measure in measures if "rel" in measure.parameters and "rel" not in dict(measure.given)]
    grades = judgments.kept_grades
    if grades.max() > _LARGEST:
        return f"relevance goes up to {grades.max():,.0f}. Check its column: a time or an id is no grade."
    fractional = bool((grades != np.rint(grades)).any())
    if relevant is not None and grades.max() < relevant:
        return f"no relevance reaches `relevant: {relevant:g}`; the greatest is {grades.max():g}"
    if not (fractional or grades.min() > 0):
        return None
    if relevant is not None or not unsaid:
        return None
    values, _ = np.unique(grades, return_counts=True)  # without counts it would import numpy.ma
    if not fractional and len(values) < _MANY:
        return None
    rel = unsaid[0].parameters["rel"]
    share = float((grades >= rel).mean())
    counted = "every judged document" if share == 1 else f"{share:.1%} of the judged documents"
    verb = "counts" if share == 1 else "count"
    high = values[values >= values[0] + _HIGH * (values[-1] - values[0])][0]
    named = ", ".join(map(str, unsaid[:_NAMED])) + (f" and {len(unsaid) - _NAMED} more" if len(unsaid) > _NAMED else "")
    return (
        f"relevance has {len(values):,} values from {values[0]:g} to {values[-1]:g}: with rel={rel:g} {counted} {verb} "
        f"as relevant in {named}; set `relevant: {high:g}` on the dataset, or rel=… in the measures"
    )


def n_without_relevant(judgments: Judgments, relevant: float | None) -> int:
    """Return the number of queries without a document of at least this grade, or above 0."""
    is_relevant = judgments.grades > 0 if relevant is None else judgments.grades >= relevant
    if judgments.counted is not None:
        is_relevant &= judgments.counted
    return int((~judgments.have_any(is_relevant)).sum())
