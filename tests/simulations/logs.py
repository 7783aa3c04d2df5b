"""How often the intervals of measures of logs hold the truth, by measure and number of users, and by what the log is.

Every user has a few rows and a click rate of their own. There are ten documents. The logging ranker shows each by a
probability that falls with its number, the evaluated one by another that rises; the click rate of a document rises,
too. So what is measured is known, and the weights are the more unequal the more the rankers differ.
"""

from dataclasses import replace

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.metrics.logged import LogBlock
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Scores
from rankledger.pipeline.inference.intervals import Resampled
from rankledger.pipeline.inference.samples import Pair
from tests.simulations.samples import ends_of, holds, markdown, sample_of, scores_of

_USERS = (50, 200, 1000)
_DRAWS, _AT_A_TIME, _RESAMPLES = 1_000, 50, 1_000
_DOCUMENTS = np.arange(10)
_RATES = 0.05 + 0.03 * _DOCUMENTS  # a user's own rate is moved by up to 0.05
_MEASURES = tuple(map(Measure.parse, ("ctr", "ips", "snips", "dr", "interleaving")))
_TILTS = (0.04, 0.16, 0.33)
_SNIPS = Measure.parse("snips")
_DIFFERENCE = "difference of snips"
_PREFERRED = 0.55  # the share of clicks that are of the ranker's own documents


def _shown(slope: float) -> Floats:
    weights = np.exp(slope * _DOCUMENTS)
    return weights / weights.sum()


def _log(rng: np.random.Generator, n_users: int, tilt: float) -> LogBlock:
    users = np.repeat(np.arange(n_users), rng.integers(1, 21, n_users))
    logging, ours = _shown(-tilt), _shown(tilt)
    shown = rng.choice(len(_DOCUMENTS), len(users), p=logging)
    own = rng.uniform(-0.05, 0.05, n_users)[users]
    columns = {
        "clicked": (rng.random(len(users)) < _RATES[shown] + own).astype(np.float64),
        "weight": (ours / logging)[shown],
        "predicted": 0.8 * _RATES[shown],  # a reward model that is a fifth too low
        "expected": np.full(len(users), 0.8 * ours @ _RATES),
        "team": (rng.random(len(users)) < _PREFERRED).astype(np.float64),
    }
    return LogBlock(n_users, users, columns, np.arange(len(users)))  # lists with one click or none


def _truths(tilt: float) -> dict[str, float]:
    logged, ours = (float(_shown(sign * tilt) @ _RATES) for sign in (-1, 1))
    of_clicks = {"ctr": logged, "ips": ours, "snips": ours, "dr": ours}
    return {**of_clicks, _DIFFERENCE: ours - logged, "interleaving": (_PREFERRED - 0.5) * logged}


def _scores(name: str, block: LogBlock, measures: tuple[Measure, ...]) -> Scores:
    values = np.array([measure.metric.function(block) for measure in measures])
    moments = {measure: measure.moments(block) for measure in measures if measure.moments is not None}
    weights = np.broadcast_to(block.n_rows, values.shape)
    return scores_of(name, values, measures, dataset="log", weights=weights, moments=moments)


def _figures(n_users: int, tilt: float) -> dict[str, list[Resampled]]:
    found: dict[str, list[Resampled]] = {}
    for part in range(_DRAWS // _AT_A_TIME):
        rng = np.random.default_rng([n_users, part])
        logs = [_log(rng, n_users, tilt) for _ in range(_AT_A_TIME)]
        plain = [replace(log, columns={**log.columns, "weight": np.ones(len(log.queries))}) for log in logs]
        results = [_scores(f"{i}", log, _MEASURES) for i, log in enumerate(logs)]
        baselines = [_scores(f"logged {i}", log, (_SNIPS,)) for i, log in enumerate(plain)]
        sample = sample_of([*results, *baselines], _RESAMPLES, part)
        for measure in _MEASURES:
            found.setdefault(str(measure), []).extend(sample.figure(result.model, measure) for result in results)
        pairs = [Pair(ours.model, logged.model, _SNIPS) for ours, logged in zip(results, baselines, strict=True)]
        found.setdefault(_DIFFERENCE, []).extend(sample.differences(pairs))
    return found


def table() -> str:
    head, rows = ["weights up to", "measure", *(f"{n:,} users" for n in _USERS)], []
    for tilt in _TILTS:
        found = [_figures(n_users, tilt) for n_users in _USERS]
        for measure, truth in _truths(tilt).items():
            cells = [_cell(figures[measure], truth) for figures in found]
            rows.append([f"{(_shown(tilt) / _shown(-tilt)).max():.1f}", measure, *cells])
    return markdown(head, rows, ["---:", *["---"] * (len(head) - 1)])


def _cell(figures: list[Resampled], truth: float) -> str:
    marked = np.mean([figure.mark != "" for figure in figures])
    return f"{holds(ends_of(figures), truth).mean():.3f}, {marked:.0%}"
