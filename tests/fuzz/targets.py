"""All targets of a fuzz run.

What Arrow and the readers import at their first use is imported here: once, and not by each batch in its process.
"""

import pandas  # noqa: F401  (by Arrow's `to_numpy`)
import pyarrow.dataset
import pyarrow.json
import pyarrow.pandas_compat  # noqa: F401

from tests.fuzz import configs, inputs, records

TARGETS = (*configs.TARGETS, *inputs.TARGETS, *records.TARGETS)
