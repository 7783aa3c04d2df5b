"""Every name of the tools that are installed here is a measure, or is refused with a reason."""

import inspect
from collections.abc import Iterable

import ir_measures.measures
import pyNTCIREVAL.metrics
import pytrec_eval
from pyNTCIREVAL.metrics.grade_metric import GradeMetric
from pyNTCIREVAL.metrics.metric import Metric as NtcirMetric

from rankledger.metrics.measure import Measure
from tests.support.each import each

TOOLS: dict[str, Iterable[str]] = {
    "ir_measures": ir_measures.measures.registry,
    "pytrec_eval": [*pytrec_eval.supported_measures, *pytrec_eval.supported_nicknames],
    "pyNTCIREVAL": [
        name
        for name, found in inspect.getmembers(pyNTCIREVAL.metrics, inspect.isclass)
        if issubclass(found, NtcirMetric) and found not in (NtcirMetric, GradeMetric)
    ],
}


def answer(name: str) -> str:
    try:
        return str(Measure.expand(name)[0])
    except ValueError as error:
        return str(error)


@each("tool", TOOLS)
def test_every_name_of_the_tool_has_an_answer(tool):
    answers = {name: answer(name) for name in tool}

    assert len(answers) > 9
    assert not {name for name, found in answers.items() if found.startswith("unknown metric")}
