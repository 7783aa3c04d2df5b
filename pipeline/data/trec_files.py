"""Two files as trec_eval takes them: qrels, and a ranking of TREC text that names its output in the last field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metrics.conventions import Conventions
from pipeline.data.files import Access
from pipeline.data.join import join_ranking
from pipeline.data.judgments import index_judgments
from pipeline.data.readers import read_judgments, read_trec_ranking
from pipeline.errors import InputError
from pipeline.tables import Joined, Rows

__all__ = ["TrecFiles", "read_trec_files"]

_TAG = 5  # its place among the fields of a line
_TYPED = Access(streams=True)  # both files are named on a command line


@dataclass(frozen=True, eq=False)
class TrecFiles:
    """What both files hold.

    Attributes:
        joined: the judged documents that each query retrieved.
        tag: the name of the output, from the ranking's last line; bytes that are no UTF-8 are lone surrogates.
    """

    joined: Joined
    tag: str


def read_trec_files(qrels: str, ranking: str, conventions: Conventions, *, n_documents: int) -> TrecFiles:
    """Judgments and a ranking, whatever their files are called.

    Args:
        qrels: the path of the judgments; either may be `-`, standard input, or a pipe.
        ranking: the path of the ranking.
        conventions: say how scores are rounded and ties are broken.
        n_documents: documents in the catalogue.

    Raises:
        InputError: a file is missing or malformed, a relevance is not a whole number, which trec_eval would cut down to
            one, or the ranking's last line names no output.
    """
    judged = read_judgments(qrels, "trec", access=_TYPED)
    _refuse_fractions(judged)
    ranked, last = read_trec_ranking(ranking, _TYPED)
    judgments = index_judgments(judged, remedy="keep one")
    joined = join_ranking(judgments, ranked, conventions, n_documents=float(n_documents))
    return TrecFiles(joined, _tag(ranking, last))


def _refuse_fractions(judged: Rows) -> None:
    fractions = np.flatnonzero(judged.values != np.trunc(judged.values))
    if fractions.size:
        row = int(fractions[0])
        found = f"relevance {judged.values[row]:g} ({judged.place(row)}) is not a whole number"
        raise InputError(f"{judged.path}: {found}, and trec_eval would cut off the fraction; mend it")


def _tag(path: str, fields: Sequence[bytes]) -> str:
    if len(fields) <= _TAG:
        raise InputError(f"{path}: the last line has no sixth field, which names the output; add it")
    return fields[_TAG].decode("utf-8", errors="surrogateescape")
