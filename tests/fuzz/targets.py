"""All targets of a fuzz run."""

from __future__ import annotations

from tests.fuzz import configs, inputs, records

TARGETS = (*configs.TARGETS, *inputs.TARGETS, *records.TARGETS)
