"""Every metric on a block of many queries; the first queries are checked against the loops of the oracle."""

import numpy as np
import pytest

from rankledger.metrics.measure import Measure
from rankledger.metrics.registry import METRICS
from tests import oracle
from tests.support.blocks import plain_block, random_query

N_QUERIES = 2_600  # about what the data stage puts into one block
GRADES = [0, 0, 0, 1, 2, 3]
WRITTEN = {"f": "f(beta=2)@10", "iprec": "iprec(recall=0.3)", "rp": "rp@10", "rprec_mult": "rprec_mult(factor=0.5)"}


@pytest.fixture(scope="module")
def queries():
    rng = np.random.default_rng(0)
    return [random_query(rng, GRADES, depth=40) for _ in range(N_QUERIES)]


@pytest.fixture(scope="module")
def block(queries):
    return plain_block(queries)


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.input == "judged"])
def test_metric(name, queries, block, benchmark):
    measure = Measure.parse(WRITTEN.get(name, name))
    arguments = measure.arguments(max_grade=max(GRADES))

    values = benchmark(measure.metric.function, block, **arguments)

    expected = [oracle.ORACLE[name](query, **arguments) for query in queries[:50]]
    np.testing.assert_allclose(values[:50], expected, atol=1e-12)
