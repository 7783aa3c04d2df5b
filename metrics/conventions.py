"""The choices on which evaluation tools disagree, and the profiles that fix them.

A profile is a complete set. `trec_eval` holds the rules behind the field's published tables: trec_eval 9.0.4 with `-c`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

__all__ = ["PROFILES", "Conventions"]


@dataclass(frozen=True)
class Conventions:
    """What holds of every measure of an evaluation.

    Attributes:
        ties: the order of documents with equal scores. `doc_id_desc`: by id as UTF-8 bytes, descending.
        score_precision: what scores are rounded to before they are compared.
        missing_queries: what a judged query without output is. `empty`: a query with an empty ranking.
        undefined_queries: what a query counts as whose score is undefined for want of relevant documents. `zero`: it
            scores 0.
        negative_grades: what a negative grade means. `unjudged`: as if the document had not been judged.
        unjudged_documents: what a document without judgment is. `non_relevant`: not relevant, and it keeps its rank.
    """

    ties: Literal["doc_id_desc"]
    score_precision: Literal["float32"]
    missing_queries: Literal["empty"]
    undefined_queries: Literal["zero"]
    negative_grades: Literal["unjudged"]
    unjudged_documents: Literal["non_relevant"]


PROFILES: Mapping[str, Conventions] = MappingProxyType(
    {
        "trec_eval": Conventions(
            ties="doc_id_desc",
            score_precision="float32",
            missing_queries="empty",
            undefined_queries="zero",
            negative_grades="unjudged",
            unjudged_documents="non_relevant",
        ),
    }
)
