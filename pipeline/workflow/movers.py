"""The queries that moved most between the pairs that a page shows, with the ranks of their relevant documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from pipeline.comparison.moved import Retrieved, moved_queries
from pipeline.data.inputs import DatasetInput
from pipeline.errors import InputError
from pipeline.movement import MovedQuery
from pipeline.workflow.paging import Shown
from pipeline.workflow.reading import Inputs
from pipeline.workflow.rescoring import Kept, retrieved
from pipeline.workflow.sources import open_record

__all__ = ["find_movers"]

_MOST_QUERIES = 10
_MOST_DOCUMENTS = 20  # of one query: a pooled collection has hundreds of relevant ones


def find_movers(shown: Sequence[Shown], inputs: Inputs) -> Iterator[MovedQuery]:
    """The queries of each pair, the greatest change first; without documents where their ranks are not known.

    Args:
        shown: the pairs.
        inputs: everything that was read.
    """
    kept = cache(_kept)  # pairs share the judgments that their baselines had
    for each in shown:
        if np.nan_to_num(each.scores.change).any():
            yield from moved_queries(each.scores, _MOST_QUERIES, _ranked(each, inputs, kept), _MOST_DOCUMENTS)


def _ranked(shown: Shown, inputs: Inputs, kept: Callable[[Path, str], Kept]) -> tuple[Retrieved, Retrieved] | None:
    """What the baseline and the model retrieved."""
    dataset = shown.scores.dataset
    after = _tonight(dataset, shown.scores.model, inputs)
    before = _tonight(dataset, shown.baseline, inputs) if shown.record is None else _then(shown, kept)
    return None if before is None or after is None else (before, after)


def _tonight(dataset: str, model: str, inputs: Inputs) -> Retrieved | None:
    read, joined = inputs.datasets[dataset], inputs.joined.get((dataset, model))
    if joined is None or joined.hits is None or not isinstance(read, DatasetInput):
        return None
    return Retrieved(read.judgments.rows, read.judgments.kept, joined.hits)


def _then(shown: Shown, kept: Callable[[Path, str], Kept]) -> Retrieved | None:
    """What the baseline retrieved in its record, where the block store or the output itself still tells."""
    assert shown.record is not None, "what is of this evaluation is looked up there"
    try:
        return retrieved(kept(shown.record.path, shown.scores.dataset), shown.baseline)
    except (InputError, OSError):
        return None


def _kept(path: Path, dataset: str) -> Kept:
    """A dataset of the record in that folder."""
    opened = open_record(path)
    assert opened.record is not None, "it was opened from its record"
    planned = next(found for found in opened.planned.datasets if found.name == dataset)
    return Kept(opened.record, opened, planned)
