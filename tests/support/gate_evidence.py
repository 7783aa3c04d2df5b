"""Evidence for gates, made of scores that a test writes down."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Floats
from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import Gate, PlannedGate, Reference
from rankledger.pipeline.data.joined import Groups, ModelKey, RecordedModel, Scores
from rankledger.pipeline.gates.evidence import Baseline, Evidence
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Sample
from rankledger.pipeline.inference.summary import IntervalRule
from rankledger.pipeline.support.parallel import Workers

NDCG, AP, RR, MAE = map(Measure.parse, ("ndcg@10", "ap", "rr@10", "mae"))
TODAY = date(2026, 11, 21)
ACCEPTED = Reference("self@accepted", "accepted", None)
BEFORE = "dense in 20261120T020000Z-nightly-1f0c9a2b"
OLD = RecordedModel("dense", "then")
"""What the baseline's scores are found by."""


def scores(model: ModelKey, values: npt.ArrayLike, measure: Measure = NDCG, dataset: str = "web") -> Scores:
    row = np.asarray(values, dtype=float)[np.newaxis]
    query_ids = np.array([f"q{query}" for query in range(row.shape[1])], dtype=object)
    name, record = (model, None) if isinstance(model, str) else (model.model, model.manifest_sha256)
    missing = np.zeros(row.shape[1], dtype=bool)
    return Scores(dataset, name, query_ids, (measure,), row, np.ones_like(row), {}, missing, record=record)


def before_and_after(before: npt.ArrayLike, after: npt.ArrayLike, measure: Measure = NDCG, dataset: str = "web"):
    return [scores("dense", after, measure, dataset), scores(OLD, before, measure, dataset)]


def evidence(
    *results: Scores, groups: Mapping[str, Groups] | None = None, resamples: int = 1000, **further: object
) -> Evidence:
    samples, query_ids = {}, {}
    for dataset in dict.fromkeys(result.dataset for result in results):
        own = [result for result in results if result.dataset == dataset]
        settings = Settings(resamples=resamples, seed=0, workers=Workers(jobs=1))
        samples[dataset] = Sample(
            own, PROFILES["trec_eval"].conventions, (groups or {}).get(dataset, Groups()), settings
        )
        query_ids[dataset] = own[0].query_ids
    fields: dict[str, object] = {
        "missing": {(result.dataset, result.model): 0.0 for result in results},
        "failures": {},
        "external_metrics": {},
        "baselines": {("gate", dataset, "dense"): Baseline(OLD, BEFORE) for dataset in (*samples, "web")},
        "failed_nights": {},
        "night": TODAY,
    }
    return Evidence(
        samples=samples,
        rule=IntervalRule("bca+t", 0.95),
        query_ids=query_ids,
        **(fields | further),  # type: ignore[arg-type]
    )


def planned_gate(**fields: object) -> PlannedGate:
    gate = PlannedGate(Gate.model_construct(name="gate"), (("web", "dense"),), (NDCG,))
    return change_gate(gate, **fields)


def change_gate(gate: PlannedGate, **fields: object) -> PlannedGate:
    written = {key: fields.pop(key) for key in {*fields} & {*Gate.model_fields} - {"against"}}
    settings = gate.settings.model_copy(update=written)
    return replace(gate, settings=settings, **fields)  # type: ignore[arg-type]


def no_drop(margin: float = 0.005, **fields: object) -> PlannedGate:
    return planned_gate(margin=margin, **{"against": ACCEPTED, **fields})


def floor(**fields: object) -> PlannedGate:
    return planned_gate(**fields)


def of_slice(verdicts: tuple[Verdict, ...], slice: str = "all") -> Verdict:
    (found,) = [verdict for verdict in verdicts if verdict.slice == slice]
    return found


def random_scores(n_queries: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).beta(1.2, 1.8, n_queries)
