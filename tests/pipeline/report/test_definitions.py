"""The list of metrics and the explanation of one: what a reader must know of a figure is all there."""

import inspect

import pytest

from rankledger.metrics.registry import METRICS
from rankledger.pipeline.report.explanation import measures
from rankledger.pipeline.support.errors import InputError


def entry(name: str) -> str:
    lines = measures().splitlines()
    begins = [number for number, line in enumerate(lines) if line[:1].strip()] + [len(lines)]
    (begin,) = [
        n for n in begins[:-1] if lines[n].split()[0].removesuffix("@k").removesuffix("[@k]") in (name, f"{name}[")
    ]
    return "\n".join(lines[begin : begins[begins.index(begin) + 1]])


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("text", [entry, measures], ids=["list", "explanation"])
def test_every_metric_is_described_in_full(name, text):
    metric, said = METRICS[name], text(name)

    low, high = metric.range
    direction = "no direction" if metric.direction == "neither" else metric.direction
    for fact in (metric.title, metric.formula, metric.reference, f"{direction} is better"):
        assert fact in said
    assert " to ".join(f"{end:g}".replace("inf", "∞") for end in (low, high)) in said
    for parameter in metric.parameters.values():
        assert f"{parameter.name}=" in said
    entry, _, _ = said.partition(inspect.getdoc(metric.function))
    assert "…" not in entry.replace(metric.formula, "").replace("=…", "")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ndcg", "gain=linear|exponential|binary, discount=log2|jarvelin, base=2, rel=1"),
        ("r", "rel=1, denominator=relevant|cutoff"),
        ("rmse", "average=pooled|query"),
        ("f", "beta=…, rel=1"),
        ("avg_rp", "cutoffs=[5,10]"),
        ("rankscore", "half_life=5"),
    ],
)
def test_parameters_are_listed_with_their_defaults(name, said):
    assert said in entry(name)
    assert said in measures(name)


@pytest.mark.parametrize(("name", "written"), [("ndcg", "ndcg[@k]"), ("rprec", "rprec"), ("rp", "rp@k")])
def test_the_list_says_whether_a_cutoff_is_written(name, written):
    assert METRICS[name].cutoff == {"ndcg[@k]": "optional", "rprec": "refused", "rp@k": "required"}[written]
    assert entry(name).startswith(f"{written}  ")


@pytest.mark.parametrize("name", ["ndcg", "ndcg@10", "ndcg(gain=exponential)@5", " ndcg@10 "])
def test_a_measure_is_explained_by_its_metric(name):
    assert measures(name) == measures("ndcg")
    assert inspect.getdoc(METRICS["ndcg"].function) in measures(name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ndgc", "unknown metric 'ndgc'; did you mean 'ndcg'?"),
        ("ndcg@0", "ndcg: cutoffs are whole numbers from 1, found '@0'"),
        ("ndcg(gain=cubic)", "ndcg: gain is one of linear, exponential, binary, found 'cubic'"),
        ("", "'' is not a measure; write metric(parameter=value,…)@cutoff, such as ndcg@10"),
    ],
)
def test_what_is_no_metric_is_refused(name, said):
    with pytest.raises(InputError) as error:
        measures(name)

    assert str(error.value) == said
