"""How often intervals of a pooled area hold the truth, and its spread beside that of areas computed anew."""

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.metrics.measure import Measure
from rankledger.metrics.ratings import RatingsBlock
from rankledger.pipeline.data.joined import Scores
from rankledger.pipeline.inference.intervals import Resampled
from rankledger.pipeline.inference.samples import Pair
from tests.simulations.samples import ends_of, holds, markdown, sample_of

_SIZES = (30, 60, 200)
_SAMPLES, _RESAMPLES, _POPULATION = 600, 500, 60_000
_ANEW, _TIMES = 8, 600  # samples whose area is computed anew, and how often


def table() -> str:
    rows = []
    everyone = _users(np.random.default_rng(0), _POPULATION)
    for measure in map(Measure.parse, ("auc", "pr_auc")):
        truth = [measure.metric.function(_in_one(block))[0] for block in everyone]
        for n_users in _SIZES:
            rng = np.random.default_rng(n_users)
            figures, differences = zip(*(_sampled(_users(rng, n_users), measure) for _ in range(_SAMPLES)), strict=True)
            held = _coverage(figures, truth[0]), _coverage(differences, truth[0] - truth[1])
            ratios = [_spread(_users(rng, n_users)[0], measure, rng) for _ in range(_ANEW)]
            cells = f"{held[0]:.3f}", f"{held[1]:.3f}", f"{min(ratios):.2f} to {max(ratios):.2f}"
            rows.append([f"`{measure}`", f"{n_users}", *cells])
    return markdown(["measure", "users", "figure", "difference", "spread, of that of areas computed anew"], rows)


def _users(rng: np.random.Generator, n_users: int) -> list[RatingsBlock]:
    sizes = rng.integers(1, 13, n_users)
    there = np.arange(12)[:, np.newaxis] < sizes
    likely = 1 / (1 + np.exp(1 - rng.normal(size=n_users) - rng.normal(size=there.shape)))
    labels = (rng.random(there.shape) < likely).astype(float)
    ids = np.array([f"u{user:05d}" for user in range(n_users)], dtype=object)
    models = (np.clip(likely + rng.normal(0, noise, there.shape), 0, 1).round(2) for noise in (0.2, 0.3))
    rated = np.where(there, labels, np.nan)
    return [RatingsBlock(ids, rated, np.where(there, scores, np.nan), sizes.astype(float)) for scores in models]


def _in_one(block: RatingsBlock, times: Floats | None = None) -> RatingsBlock:
    there = ~np.isnan(block.ratings.T)
    weights = there * (np.ones(len(there)) if times is None else times)[:, np.newaxis]
    ratings, predictions, weight = (
        own[there][:, np.newaxis] for own in (block.ratings.T, block.predictions.T, weights)
    )
    return RatingsBlock(block.query_ids[:1], ratings, predictions, np.array([float(there.sum())]), weight)


def _scores(block: RatingsBlock, model: str, measure: Measure) -> Scores:
    assert measure.moments is not None
    missing = np.zeros(len(block.query_ids), dtype=bool)
    values, moments = measure.metric.function(block), {measure: measure.moments([block])}
    return Scores(
        "d", model, block.query_ids, (measure,), values[None], block.weight[None], {}, missing, moments=moments
    )


def _sampled(blocks: list[RatingsBlock], measure: Measure) -> tuple[Resampled, Resampled]:
    results = [_scores(block, model, measure) for block, model in zip(blocks, "ab", strict=True)]
    sample = sample_of(results, _RESAMPLES)
    (difference,) = sample.differences([Pair("a", "b", measure)])
    return sample.figure("a", measure), difference


def _coverage(figures: tuple[Resampled, ...], truth: float) -> float:
    return float(holds(ends_of(figures), truth).mean())


def _spread(block: RatingsBlock, measure: Measure, rng: np.random.Generator) -> float:
    figure, _ = _sampled([block, block], measure)
    n_users = len(block.query_ids)
    drawn = (np.bincount(rng.integers(0, n_users, n_users), minlength=n_users) for _ in range(_TIMES))
    anew = [measure.metric.function(_in_one(block, times))[0] for times in drawn]
    return float(np.sqrt(figure.variance) / np.std(anew))
