"""The tables that stages hand to one another."""

from __future__ import annotations

from pipeline.tables.evaluation import Evaluation, Failure, Record, Validation
from pipeline.tables.inputs import Chunk, Content, Ids, InputFile, Rows
from pipeline.tables.joined import Groups, Hits, Joined, Quality
from pipeline.tables.scores import Estimate, Scores

__all__ = [
    "Chunk",
    "Content",
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
    "Validation",
]
