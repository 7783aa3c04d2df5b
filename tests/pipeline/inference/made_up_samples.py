"""Made-up scores of a few models on one dataset, and the sample that is drawn of them."""

import dataclasses

import numpy as np

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Groups, Scores
from rankledger.pipeline.inference.resampling import BootstrapDraws, ResampledSums, Settings
from rankledger.pipeline.inference.samples import Sample
from rankledger.pipeline.support.parallel import Workers

CONVENTIONS = PROFILES["trec_eval"].conventions
SKIPPING = dataclasses.replace(CONVENTIONS, undefined_queries="skip")
AP, GMAP, RMSE, R2 = map(Measure.parse, ("ap", "gmap", "rmse", "r2"))
ONE = Workers(jobs=1)


def scores(model, values, measure=AP, weights=None, moments=None, dataset="d"):
    """One model's scores by one measure, or by several where they have a row each."""
    measures = measure if isinstance(measure, tuple) else (measure,)
    values = np.atleast_2d(np.asarray(values, dtype=float))
    weights = np.ones(values.shape) if weights is None else np.atleast_2d(np.asarray(weights, dtype=float))
    n_queries = values.shape[1]
    query_ids = np.array([f"q{i:05}" for i in range(n_queries)], dtype=object)
    return Scores(
        dataset=dataset,
        model=model,
        query_ids=query_ids,
        measures=measures,
        values=values,
        weights=weights,
        figures={},
        missing=np.zeros(n_queries, dtype=bool),
        moments=moments or {},
    )


def sample(*results, groups=None, conventions=CONVENTIONS, resamples=200, seed=0, **settings):
    settings = Settings(resamples, seed, ONE, **settings)
    return Sample(results, conventions, groups or Groups(), settings)


def drawn_counts(n_clusters, resamples, stream="d"):
    """(B, C): how often each cluster is in the resamples of this dataset: the sums of a column for each of them."""
    each = ResampledSums(slice(None), np.eye(n_clusters))
    return BootstrapDraws(n_clusters, stream, Settings(resamples, 0, ONE)).sums([each])[0][0, :, 1:].T


def two_models(ours, theirs, measure=AP, **options):
    return sample(scores("m", ours, measure), scores("n", theirs, measure), **options)
