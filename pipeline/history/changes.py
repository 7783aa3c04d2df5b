"""Changes between two evaluations: queries, documents, definitions, values and environments."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats
from rankledger.metrics.conventions import Conventions
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data.dataset import DatasetInput, read_titles, top_documents
from rankledger.pipeline.data.joined import Groups, RetrievedRanks
from rankledger.pipeline.data.outputs import exclusions_key, key_judgments, left_out
from rankledger.pipeline.data.rows import InputFile
from rankledger.pipeline.inference.tables import PairedScores, QueryChange, RankedDocument
from rankledger.pipeline.record.evaluation import ListedDocument, QueryDetail
from rankledger.pipeline.record.manifest import Manifest
from rankledger.pipeline.record.manifest_parts import OPTIONAL, Definition, Environment
from rankledger.pipeline.support.errors import shorten

DEPTH = 10  # documents of a list that are shown
_TITLE = 160  # characters
_TEXT = 500


@dataclass(frozen=True, eq=False)
class ShownDataset:
    """Dataset of which some queries are shown. `read` is None if it is not of rankings."""

    planned: PlannedDataset
    query_ids: npt.NDArray[np.object_]  # (Q,)
    groups: Groups
    files: Mapping[str, Sequence[InputFile]]
    read: DatasetInput | None  # None if it is not of rankings
    conventions: Conventions

    @cached_property
    def places(self) -> Mapping[str, int]:
        return {query_id: place for place, query_id in enumerate(self.query_ids.tolist())}

    def slices(self, query_id: str) -> tuple[str, ...]:
        place = self.places[query_id]
        return tuple(name for name, members in self.groups.slices.items() if members[place])


@dataclass(frozen=True, eq=False)
class ShownOutput:
    """Rankings of a model whose first documents are shown. `ranks` replaces rankings that cannot be read."""

    name: str  # model, `bm25 in ID` for another record
    source: Source
    files: tuple[InputFile, ...]
    ranks: Callable[[], RetrievedRanks | None]  # used if the rankings cannot be read


def query_details(
    dataset: ShownDataset, query_ids: Sequence[str], wanted: Iterable[tuple[ShownOutput, Collection[str]]]
) -> list[QueryDetail]:
    """Return details of queries. `wanted` pairs outputs with the queries whose first documents are shown."""
    outputs: dict[str, tuple[ShownOutput, dict[str, None]]] = {}
    for output, ids in wanted:
        outputs.setdefault(output.name, (output, {}))[1].update(dict.fromkeys(ids))
    lists: dict[str, dict[str, tuple[ListedDocument, ...]]] = {}
    for output, ids in outputs.values():
        for query_id, listed in _lists(dataset, output, ids):
            lists.setdefault(query_id, {})[output.name] = listed
    documents, queries, titles, texts = dataset.planned.documents, dataset.planned.queries, {}, {}
    if documents is not None:
        names = {
            each.doc_id
            for by_output in lists.values()
            for listed in by_output.values()
            for each in listed
            if each.doc_id
        }
        titles = read_titles(documents.shown, dataset.files.get("documents", ()), "doc_id", names)
    if queries is not None:
        texts = read_titles(queries.shown, dataset.files.get("queries", ()), "query_id", query_ids)

    def titled(document: ListedDocument) -> ListedDocument:
        return replace(document, title=shorten(titles.get(document.doc_id or "", ""), _TITLE))

    return [
        QueryDetail(
            dataset.planned.name,
            query_id,
            shorten(texts.get(query_id, ""), _TEXT),
            dataset.slices(query_id),
            {name: tuple(map(titled, listed)) for name, listed in lists.get(query_id, {}).items()},
        )
        for query_id in query_ids
    ]


def _lists(
    dataset: ShownDataset, output: ShownOutput, query_ids: Collection[str]
) -> Iterator[tuple[str, tuple[ListedDocument, ...]]]:
    if dataset.read is None:
        return
    judgments = dataset.read.judgments
    documents_of = top_documents(dataset.read, output.source, output.files, query_ids, dataset.conventions, DEPTH)
    ranks = output.ranks() if documents_of is None else None
    for query_id in query_ids:
        grades = judgments.grades_of(int(judgments.find([query_id])[0]))
        if documents_of is not None:
            documents = enumerate(documents_of.get(query_id, ()), start=1)
            yield query_id, tuple(ListedDocument(rank, name, grades.get(name)) for rank, name in documents)
        elif ranks is not None:
            yield query_id, tuple(_list_judged(ranks.ranks(query_id), grades))


def _list_judged(ranks: Mapping[str, int], grades: Mapping[str, float]) -> Iterator[ListedDocument]:
    names = {rank: name for name, rank in ranks.items() if rank <= DEPTH}
    for rank in range(1, max(names, default=0) + 1):
        name = names.get(rank)
        yield ListedDocument(rank, name, None if name is None else grades.get(name))


def name_needs(measure: Measure) -> list[str]:
    """Return the inputs besides judgments that a measure needs, as `Dataset.digests` names them."""
    needs = {"documents", *measure.metric.needs} if measure.parameters.get("d") else {*measure.metric.needs}
    return [kind for kind in OPTIONAL if kind.removesuffix("s") in needs or kind in needs]


def digest_inputs(
    dataset: PlannedDataset, files: Mapping[str, Sequence[InputFile]], query_ids: npt.NDArray[np.object_]
) -> dict[str, str]:
    """Return digests by kind of everything besides outputs that scores on a dataset depend on."""
    digests: dict[str, object] = {}
    if files.get("judgments") or files.get("ratings"):
        digests["judgments"] = [*key_judgments(dataset, files).values()]
    elif "logs" not in dataset.suites:  # each night has a log of its own
        digests["queries"] = sorted(query_ids.tolist())
    if exclusions := left_out(exclusions_key(dataset, files)):
        digests["excluded documents"] = dict(exclusions)
    digests |= {role: [file.digest for file in files[role]] for role in ("documents", "interactions") if role in files}
    if dataset.cluster:
        digests["clusters"] = [dataset.cluster, [file.digest for file in files.get("queries", ())]]
    return {
        kind: hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest() for kind, parts in digests.items()
    }


def counted_scores(scores: Floats, missing: Bools, missing_queries: str) -> Floats:
    """Return (Q,) scores, NaN for queries that are in no mean, such as queries without output under `skip`."""
    return np.where(missing, np.nan, scores) if missing_queries == "skip" else scores


def oriented(before: Floats, after: Floats, direction: str) -> Floats:
    """Return (Q,) changes of which positive ones are better."""
    return before - after if direction == "lower" else after - before


def changed_queries(
    pair: PairedScores, top: int, ranked: tuple[RetrievedRanks, RetrievedRanks] | None, n_documents: int | None = None
) -> Iterator[QueryChange]:
    """Yield at most `top` queries of a pair that moved most, with their best-ranked relevant documents."""
    for place in most_changed(pair.change, top):
        query_id = str(pair.query_ids[place])
        documents = None if ranked is None else relevant_documents(*ranked, query_id)[:n_documents]
        yield QueryChange(
            pair.dataset,
            pair.model,
            pair.baseline,
            pair.measure,
            query_id,
            before=float(pair.before[place]),
            after=float(pair.after[place]),
            change=float(pair.change[place]),
            documents=documents,
        )


def most_changed(change: Floats, top: int) -> list[int]:
    """Return the indices of at most `top` changed queries, the largest change first. NaN is no change."""
    sizes = np.abs(np.nan_to_num(change, nan=0.0))
    order = np.argsort(-sizes, kind="stable")[:top]
    return [int(place) for place in order if sizes[place] > 0]


def relevant_documents(before: RetrievedRanks, after: RetrievedRanks, query_id: str) -> tuple[RankedDocument, ...]:
    """Return the query's relevant documents with both ranks, the best rank first, then those never retrieved."""
    grades = after.relevant(query_id)
    ranks = (before.ranks(query_id), after.ranks(query_id))
    documents = [
        RankedDocument(name, grade, *(ranks_of.get(name) for ranks_of in ranks)) for name, grade in grades.items()
    ]
    return tuple(sorted(documents, key=_best_rank))


def _best_rank(document: RankedDocument) -> tuple[float, str]:
    ranks = [rank for rank in (document.before, document.after) if rank is not None]
    return min(ranks, default=float("inf")), document.doc_id


def definition_differences(
    base: Manifest, candidate: Manifest, measures: Sequence[str], dataset: str = ""
) -> Iterator[str]:
    """Yield a line per difference of definitions, with its measures."""
    before, after = (manifest.definitions_for(dataset) for manifest in (base, candidate))
    changed: dict[str, list[str]] = {}
    for name in (name for name in measures if before[name].fingerprint != after[name].fingerprint):
        ways = [*_unlike_parameters(before[name], after[name]), *_unlike_code(base, candidate, name)]
        for way in ways or [*_unlike_conventions(base, candidate)] or ["defined otherwise"]:
            changed.setdefault(way, []).append(name)
    for way, names in changed.items():
        listed = ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:3])} and {len(names) - 3} more"
        yield f"{listed}: {way}"


def _unlike_parameters(before: Definition, after: Definition) -> Iterator[str]:
    values = before.parameters | after.parameters
    for name in values:
        then, now = before.parameters.get(name), after.parameters.get(name)
        if then != now:
            yield f"{name} was {_write_value(then)} and is {_write_value(now)}"
    if before.direction != after.direction:  # of external scores, which the config declares
        yield f"the better direction was {before.direction} and is {after.direction}"
    if before.version != after.version:
        yield f"the metric's version was {before.version} and is {after.version}"


def _unlike_code(base: Manifest, candidate: Manifest, measure: str) -> Iterator[str]:
    name = re.split("[(@]", measure)[0]
    before, after = (manifest.own_metrics.get(name) for manifest in (base, candidate))
    then, now = before and before["code"], after and after["code"]
    if then != now:
        yield f"its code was {_write_value(then)} and is {_write_value(now)}"


def _unlike_conventions(base: Manifest, candidate: Manifest) -> Iterator[str]:
    after = dict(candidate.conventions)
    unlike = {name: (value, after[name]) for name, value in base.conventions if value != after[name]}
    profiles = unlike.pop("profile", None)
    for name, (then, now) in unlike.items() or ([("profile", profiles)] if profiles else []):
        yield f"{name} was {_write_value(then)} and is {_write_value(now)}"


def _write_value(value: object) -> str:
    return "none" if value is None else str(value)


_COMPUTING = ("rankledger", "numpy", "pyarrow")  # the packages that a figure can depend on


def other_versions(before: Environment, after: Environment) -> Iterator[str]:
    """Yield changed versions that values can depend on, such as `numpy 2.4.6 → 2.3.5`."""
    versions = [
        {name: str(environment.packages.get(name, "none")) for name in _COMPUTING}
        | {
            "python": environment.python,
            "platform": environment.platform,
            "BLAS": ", ".join(environment.blas) or "none",
        }
        for environment in (before, after)
    ]
    for name, version in versions[0].items():
        if version != versions[1][name]:
            yield f"{name} {version} → {versions[1][name]}"


def other_code(before: Environment, after: Environment) -> Iterator[str]:
    """Yield differences of the config's repository, nothing if either evaluation was outside of one."""
    then, now = before.git, after.git
    if then is None or now is None:
        return
    if then.commit != now.commit:
        yield f"commit {then.commit[:12]} → {now.commit[:12]}"
    for when, state in (("then", then), ("now", now)):
        if state.dirty:
            yield f"changes that were not committed {when}"
