"""How often the intervals of measures of logs hold the truth, by measure and number of users, and by what the log is.

Every user has a few rows and a click rate of their own. There are ten documents. The logging ranker shows each by a
probability that falls with its number, the evaluated one by another that rises; the click rate of a document rises,
too. So what is measured is known, and the weights are the more unequal the more the rankers differ.
"""

from dataclasses import replace

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.logged import LogBlock
from rankledger.metrics.measure import Measure
from rankledger.pipeline.inference.intervals import Resampled, interval
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Pair, Sample
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.types.joined import Groups
from rankledger.pipeline.types.results import Scores

CONVENTIONS = PROFILES["trec_eval"].conventions
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
    """The rows of 1 to 20 impressions of each user, by a ranker tilted to one end, weighted for the other."""
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


def _scores(name: str, block: LogBlock, query_ids: np.ndarray, measures: tuple[Measure, ...]) -> Scores:
    return Scores(
        dataset="log",
        model=name,
        query_ids=query_ids,
        measures=measures,
        values=np.array([measure.metric.function(block) for measure in measures]),
        weights=np.broadcast_to(block.n_rows, (len(measures), block.n_queries)),
        figures={},
        missing=np.zeros(block.n_queries, dtype=bool),
        moments={measure: measure.moments(block) for measure in measures if measure.moments is not None},
    )


def _figures(n_users: int, tilt: float) -> dict[str, list[Resampled]]:
    """By measure, the figure of each draw; and the difference from the logging ranker, whose weights are all 1."""
    found: dict[str, list[Resampled]] = {}
    query_ids = np.arange(n_users).astype(str).astype(object)
    for part in range(_DRAWS // _AT_A_TIME):
        rng = np.random.default_rng([n_users, part])
        logs = [_log(rng, n_users, tilt) for _ in range(_AT_A_TIME)]
        plain = [replace(log, columns={**log.columns, "weight": np.ones(len(log.queries))}) for log in logs]
        results = [_scores(f"{i}", log, query_ids, _MEASURES) for i, log in enumerate(logs)]
        baselines = [_scores(f"logged {i}", log, query_ids, (_SNIPS,)) for i, log in enumerate(plain)]
        settings = Settings(_RESAMPLES, part, Workers(jobs=1))
        sample = Sample([*results, *baselines], CONVENTIONS, Groups(), settings)
        for measure in _MEASURES:
            found.setdefault(str(measure), []).extend(sample.figure(result.model, measure) for result in results)
        pairs = [Pair(ours.model, logged.model, _SNIPS) for ours, logged in zip(results, baselines, strict=True)]
        found.setdefault(_DIFFERENCE, []).extend(sample.differences(pairs))
    return found


def table() -> str:
    """Markdown: a row per log and measure; by number of users the coverage, and the share that is marked."""
    sizes = " | ".join(f"{n:,} users" for n in _USERS)
    lines = [f"| weights up to | measure | {sizes} |", "|---:|---|" + "---|" * len(_USERS)]
    for tilt in _TILTS:
        found = [_figures(n_users, tilt) for n_users in _USERS]
        for measure, truth in _truths(tilt).items():
            cells = [_cell(figures[measure], truth) for figures in found]
            lines.append(f"| {(_shown(tilt) / _shown(-tilt)).max():.1f} | {measure} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(figures: list[Resampled], truth: float) -> str:
    ends = np.array([interval(figure, "bca+t", 0.95) for figure in figures], dtype=float)
    held = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    marked = np.mean([figure.mark != "" for figure in figures])
    return f"{held.mean():.3f}, {marked:.0%}"
