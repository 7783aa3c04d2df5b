"""A dataset of scores that were made elsewhere, and every model's scores on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from metrics.conventions import Conventions
from metrics.measure import Measure
from pipeline.config.plan import PlannedDataset
from pipeline.data.given_scores import GivenInput, GivenOutput, given_dataset, read_given_scores
from pipeline.data.inputs import Source
from pipeline.data.overlap import refuse_other_queries
from pipeline.errors import InputError
from pipeline.parallel import Workers
from pipeline.tables import Failure, InputFile, Quality, Scores

__all__ = ["Given", "read_given"]


@dataclass(frozen=True, eq=False)
class Given:
    """One model's scores on a dataset, its files, and what was found on the way."""

    scores: Scores
    quality: Quality
    files: tuple[InputFile, ...]


def read_given(
    dataset: PlannedDataset,
    queries: Source | None,
    outputs: Mapping[str, tuple[Source, bool]],
    conventions: Conventions,
    workers: Workers,
    *,
    recorded: Sequence[str] = (),
) -> tuple[GivenInput, dict[str, Given | Failure]]:
    """The dataset, and by model its scores, or why there are none.

    Args:
        dataset: what was planned; its measures are the scores.
        queries: its queries table.
        outputs: by model, its file, and whether it may have no query of the dataset.
        conventions: say whether a query may be without scores.
        workers: read the files.
        recorded: the queries of an earlier evaluation, where it is evaluated again.

    Raises:
        InputError: the queries table is missing or wrong, or of other queries than those recorded.
    """
    calls = [(dataset.name, model, source, dataset.measures) for model, (source, _) in outputs.items()]
    found = dict(zip(outputs, workers.run("Reading", _read, calls, unit="outputs"), strict=True))
    read = [output for output in found.values() if isinstance(output, GivenOutput)]
    given = given_dataset(read, queries, cluster=dataset.cluster, slices=dataset.slices, recorded=recorded)
    return given, {
        model: output
        if isinstance(output, Failure)
        else _scores(dataset, model, output, given, conventions, allow_no_overlap=outputs[model][1])
        for model, output in found.items()
    }


def _read(dataset: str, model: str, output: Source, measures: Sequence[Measure]) -> GivenOutput | Failure:
    try:
        return read_given_scores(output, measures)
    except InputError as error:
        return Failure(dataset, model, str(error))


def _scores(
    dataset: PlannedDataset,
    model: str,
    output: GivenOutput,
    given: GivenInput,
    conventions: Conventions,
    *,
    allow_no_overlap: bool,
) -> Given | Failure:
    try:
        if not allow_no_overlap:
            refuse_other_queries(output.path, output.query_ids, given.query_ids, what="queries")
        values, missing, quality = output.of(given.query_ids, conventions)
    except InputError as error:
        return Failure(dataset.name, model, str(error))
    scores = Scores(
        dataset=dataset.name,
        model=model,
        query_ids=given.query_ids,
        measures=dataset.measures,
        values=values,
        weights=np.ones_like(values),
        figures={},
        missing=missing,
    )
    return Given(scores, quality, output.files)
