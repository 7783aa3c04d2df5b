"""The tables that stages hand to one another."""

from __future__ import annotations

from pipeline.tables.evaluation import DataWarning, Evaluation, Failure, Record, Validation, definitions_on
from pipeline.tables.inputs import Chunk, Content, Ids, InputFile, Rows
from pipeline.tables.joined import Groups, Hits, Joined, Quality, Unmatched
from pipeline.tables.scores import Estimate, Scores

__all__ = [
    "Chunk",
    "Content",
    "DataWarning",
    "Estimate",
    "Evaluation",
    "Failure",
    "Groups",
    "Hits",
    "Ids",
    "InputFile",
    "Joined",
    "Quality",
    "Record",
    "Rows",
    "Scores",
    "Unmatched",
    "Validation",
    "definitions_on",
]
