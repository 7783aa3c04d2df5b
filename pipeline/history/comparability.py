"""Inputs that a measure needs, and their digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
import numpy.typing as npt

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.sources import PlannedDataset
from rankledger.pipeline.data.dataset import content_of
from rankledger.pipeline.data.outputs import exclusions_key
from rankledger.pipeline.data.rows import InputFile
from rankledger.pipeline.record.manifest_parts import OPTIONAL


def name_needs(measure: Measure) -> list[str]:
    """Return the inputs besides judgments that a measure needs, as `Dataset.digests` names them."""
    needs = {"documents", *measure.metric.needs} if measure.parameters.get("d") else {*measure.metric.needs}
    return [kind for kind in OPTIONAL if kind.removesuffix("s") in needs or kind in needs]


def digest_inputs(
    dataset: PlannedDataset, files: Mapping[str, Sequence[InputFile]], query_ids: npt.NDArray[np.object_]
) -> dict[str, str]:
    """Return digests by kind of everything besides outputs that scores on a dataset depend on."""
    digests: dict[str, object] = {}
    if judged := files.get("judgments") or files.get("ratings"):
        content = asdict(content_of(dataset.judged.shown, judged))
        digests["judgments"] = [content, dataset.subtopics, "keep_first" if dataset.keep_first else "refuse"]
    elif "logs" not in dataset.suites:  # each night has a log of its own
        digests["queries"] = sorted(query_ids.tolist())
    exclusions = exclusions_key(dataset, files)
    if exclusions and exclusions.left_out is not None:
        digests["excluded documents"] = asdict(exclusions.left_out)
    digests |= {role: [file.digest for file in files[role]] for role in ("documents", "interactions") if role in files}
    if dataset.cluster:
        digests["clusters"] = [dataset.cluster, [file.digest for file in files.get("queries", ())]]
    return {kind: hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest() for kind, own in digests.items()}
