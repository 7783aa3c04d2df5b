"""What outputs have in common with their dataset, once all are read: what is refused, and what is to be known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from pipeline.config.plan import Plan, PlannedDataset
from pipeline.data.given_scores import GivenInput
from pipeline.data.grades import rated_relevance
from pipeline.data.inputs import DatasetInput, Source, returns_any
from pipeline.data.overlap import small_overlap
from pipeline.errors import InputError
from pipeline.parallel import Workers
from pipeline.tables import DataWarning, Failure, Unmatched
from pipeline.workflow.given import Given
from pipeline.workflow.stored import OutputReader, Read

__all__ = ["data_warnings", "refuse_unmatched"]

Key = tuple[str, str]  # dataset, model
Found = Mapping[Key, Read | Given | Failure]


def refuse_unmatched(
    found: Found, outputs: Mapping[Key, Source], readers: Mapping[str, OutputReader], workers: Workers
) -> dict[Key, Failure]:
    """The outputs of which no document is known, unless a model with judged documents returns some of them, too.

    Only then the others are read again: whatever the store had of them, it does not know their unjudged documents.

    Args:
        found: what was read of every output.
        outputs: where they are.
        readers: whoever read them, by dataset.
        workers: read them again.
    """
    refused: dict[Key, Failure] = {}
    for (dataset, model), output in found.items():
        unmatched = output.joined.unmatched if isinstance(output, Read) else None
        if unmatched is not None and not _is_shared(dataset, unmatched, found, outputs, readers[dataset], workers):
            refused[dataset, model] = Failure(dataset, model, unmatched.refusal)
    return refused


def _is_shared(
    dataset: str,
    unmatched: Unmatched,
    found: Found,
    outputs: Mapping[Key, Source],
    reader: OutputReader,
    workers: Workers,
) -> bool:
    others = [
        key for key, output in found.items() if key[0] == dataset and isinstance(output, Read) and _n_hits(output)
    ]
    calls = [(reader, outputs[key], unmatched.documents) for key in others]
    return any(workers.run("Reading", _returns_any, calls, unit="outputs"))


def _returns_any(reader: OutputReader, output: Source, documents: pa.StringArray) -> bool:
    try:
        return returns_any(output, documents, reader.conventions)
    except InputError:  # it is gone, and the store had what was asked of it
        return False


def _n_hits(output: Read | Given) -> int | None:
    """The judged documents among those retrieved; None where none are retrieved."""
    hits = output.joined.hits if isinstance(output, Read) else None
    return None if hits is None else len(hits.queries)


def data_warnings(
    planned: Plan, datasets: Mapping[str, DatasetInput | GivenInput], found: Found
) -> Iterator[DataWarning]:
    """What is likely wrong with the inputs, dataset by dataset: its relevance first, then its outputs."""
    for dataset in planned.datasets:
        yield from _of_relevance(dataset, datasets[dataset.name])
        read = {key: output for key, output in found.items() if key[0] == dataset.name}
        known = {key: output for key, output in read.items() if not isinstance(output, Failure)}
        for key, output in known.items():
            others = [other.quality for name, other in known.items() if name != key]
            n_queries = len(datasets[dataset.name].query_ids)
            warning = small_overlap(n_queries, output.quality, others, n_judged=_n_hits(output))
            if warning:
                yield DataWarning(*key, warning)


def _of_relevance(planned: PlannedDataset, dataset: DatasetInput | GivenInput) -> Iterator[DataWarning]:
    if planned.kind == "rankings" and isinstance(dataset, DatasetInput):
        warning = rated_relevance(dataset.judgments, planned.measures, planned.relevant)
        if warning:
            yield DataWarning(planned.name, "", warning)
