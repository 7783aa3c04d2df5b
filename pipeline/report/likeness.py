"""Whether the figures of several evaluations may be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.pages import Page
from pipeline.report.boards import called
from pipeline.tables import definitions_on

__all__ = ["shared_leading", "unlike"]


def shared_leading(pages: Sequence[Page]) -> dict[str, str]:
    """By dataset of any of the evaluations the measure that leads; where they differ, that of the newest."""
    by_age = sorted(pages, key=lambda page: str(page.manifest["created"]))
    newest = {dataset: measure for page in by_age for dataset, measure in page.evaluation.leading.items()}
    return {dataset: newest[dataset] for page in pages for dataset in page.datasets}


def unlike(pages: Sequence[Page]) -> Iterator[str]:
    """What keeps their leading figures from being compared, a sentence each."""
    for dataset, measure in shared_leading(pages).items():
        own = [page.manifest for page in pages if dataset in page.datasets]
        on = f"on {called(dataset)} in these evaluations: figures there cannot be compared"
        if len({manifest["datasets"].get(dataset, {}).get("reading") for manifest in own}) > 1:
            yield f"the judgments are not the same {on}"
        if (
            len({definitions_on(manifest, dataset).get(measure, {}).get("fingerprint") for manifest in own} - {None})
            > 1
        ):
            yield f"{measure} is not defined alike {on}"
