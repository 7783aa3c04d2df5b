"""False alarms of a gate over 90 nights, and of 20 gates in one night, and what their prevention costs in power."""

from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import Looks, PlannedGate
from rankledger.pipeline.gates.evidence import errors_of
from rankledger.pipeline.inference.intervals import ENOUGH, Resampled, tail_end
from tests.simulations.samples import markdown
from tests.support.gate_evidence import planned_gate

_N = 300
_NIGHTS, _GATES = 90, 20
_SERIES = 1_000
_SHARES = (1.0, 0.95, 0.5, 0.0)
_CONFIDENCE = 0.95
_AP = Measure.parse("ap")
_NO_RESAMPLES = np.zeros(0)
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]
"""Takes a generator and a shape; gives differences whose mean is 0 over endlessly many queries."""


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return rng.normal(0.0, 0.1, shape)


def _rare_gains(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    steps = np.where(rng.random(shape) < 0.8, rng.uniform(-0.25, 0.0, shape), rng.uniform(0.0, 1.0, shape))
    return steps * (rng.random(shape) < 0.3)


_POPULATIONS: dict[str, Draw] = {"normal": _normal, "skewed, 30% differ": _rare_gains}


def _gate(**fields: object) -> PlannedGate:
    return planned_gate(tasks=(("d", "m"),), measures=(_AP,), margin=0.0, **fields)


def _error(gate: PlannedGate) -> float:
    errors = errors_of(gate, _CONFIDENCE)
    assert errors is not None, "a gate with a margin is judged by an interval"
    return errors[0]


_ALONE = _error(_gate())
_LOOKS = _error(_gate(looks=Looks(changed_outputs=_NIGHTS)))
_PER_NIGHT = _error(_gate(n_sharing=_GATES))


def shares_failed(
    draw: Draw, errors: Sequence[float], *, shared: float, n_looks: int, n_series: int, excess: float = 0.0
) -> list[float]:
    rng = np.random.default_rng(0)
    failed = np.zeros(len(errors), dtype=int)
    for _ in range(n_series):
        own, common = draw(rng, (n_looks, _N)), draw(rng, (_N,))
        values = np.where(rng.random((n_looks, _N)) < shared**0.5, common, own) - excess
        figures = [_figure(row) for row in (values if shared < 1 else values[:1])]
        failed += [any(_fails(figure, error) for figure in figures) for error in errors]
    return [float(share) for share in failed / n_series]


def _figure(differences: Floats) -> Resampled:
    mean = float(differences.mean())
    return Resampled(mean, mean, _NO_RESAMPLES, (differences - mean) / _N, _N, _N, (-1.0, 1.0))


def _fails(figure: Resampled, error: float) -> bool:
    return figure.kappa >= ENOUGH and tail_end(figure, error, upper=True) < 0


def table() -> str:
    head = ["differences", "error in common", f"{_NIGHTS} nights", "with `looks`", f"{_GATES} gates", "`per_night`"]
    rows = []
    for name, draw in _POPULATIONS.items():
        for shared in _SHARES:
            rates = [
                rate
                for n_looks, errors in ((_NIGHTS, (_ALONE, _LOOKS)), (_GATES, (_ALONE, _PER_NIGHT)))
                for rate in shares_failed(draw, errors, shared=shared, n_looks=n_looks, n_series=_SERIES)
            ]
            rows.append([name, f"{shared:g}", *(f"{rate:.1%}" for rate in rates)])
    return f"{markdown(head, rows)}\n\n{_prices()}"


def _prices() -> str:
    z = NormalDist().inv_cdf
    excess = 0.1 * (z(1 - _ALONE) + z(0.95)) / _N**0.5
    rows, names = [], ("alone", "with `looks`", f"{_GATES} gates, `per_night`")
    errors = (_ALONE, _LOOKS, _PER_NIGHT)
    found = shares_failed(_normal, errors, shared=0.0, n_looks=1, n_series=10 * _SERIES, excess=excess)
    for name, error, share in zip(names, errors, found, strict=True):
        times = ((z(1 - error) + z(0.8)) / (z(1 - _ALONE) + z(0.8))) ** 2
        rows.append([name, f"{share:.1%}", f"{times:.2f} ×"])
    return markdown(["", "a drop found in one night", "queries for the same power (80%)"], rows)
