"""The points of every model's curves: precision by recall with its band, and how much is judged by rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pipeline.config.plan import Plan
from pipeline.config.sections import Config
from pipeline.data.assemble import judged_by_rank
from pipeline.data.inputs import DatasetInput
from pipeline.evaluation import score
from pipeline.inference.curves import precision_by_recall, recall_levels
from pipeline.inference.estimates import IntervalRule
from pipeline.inference.samples import Sample
from pipeline.pages import CurvePoint
from pipeline.parallel import Workers
from pipeline.tables import Scores
from pipeline.workflow.reading import Inputs

__all__ = ["curves_of", "score_recall"]


def score_recall(config: Config, planned: Plan, inputs: Inputs, workers: Workers) -> tuple[Scores, ...]:
    """The scores that curves of precision by recall are made of; none where no page is to show them.

    Args:
        config: the config.
        planned: what it comes to; curves are of rankings.
        inputs: everything that was read.
        workers: run the scoring.
    """
    if not config.report:
        return ()
    profile = config.conventions.resolved
    levels = recall_levels(profile)
    ranked = {
        dataset.name: tuple(map(dataset.defined, levels)) for dataset in planned.datasets if dataset.kind == "rankings"
    }
    joined = {task: found for task, found in inputs.joined.items() if task[0] in ranked}
    return score(joined, ranked, profile, workers)


def curves_of(
    samples: Sequence[Sample], recall: Sequence[Scores], rule: IntervalRule, inputs: Inputs
) -> Iterator[CurvePoint]:
    """The points of all curves, dataset by dataset.

    Args:
        samples: the datasets' resamples, those of `recall` among them.
        recall: the scores by `score_recall`.
        rule: how an interval is read off.
        inputs: everything that was read.
    """
    own: Mapping[str, list[Scores]] = {sample.dataset: [] for sample in samples}
    for scores in recall:
        own[scores.dataset].append(scores)
    for sample in samples:
        yield from precision_by_recall(sample, own[sample.dataset], rule)
        for scores in own[sample.dataset]:
            yield from _judged(scores.dataset, scores.model, inputs)


def _judged(dataset: str, model: str, inputs: Inputs) -> Iterator[CurvePoint]:
    """How much of what a model retrieved is judged, rank by rank."""
    read, hits = inputs.datasets[dataset], inputs.joined[dataset, model].hits
    assert isinstance(read, DatasetInput), "what has a curve was ranked and judged"
    assert hits is not None, "what is joined with judgments has hits"
    grades = read.judgments.rows.values[hits.judgment_rows]
    for rank, share, n_queries in judged_by_rank(hits.ranks, grades, hits.n_retrieved):
        yield CurvePoint(dataset, model, "judged", float(rank), share, None, None, n_queries)
