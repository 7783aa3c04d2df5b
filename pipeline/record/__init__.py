"""The record of an evaluation, the source of truth: a folder, written whole under a temporary name and then renamed.

It holds `config.yaml`, `manifest.json`, `scores.parquet`, `summary.csv` and `report.html`; and, where there are any,
`comparisons.csv`, `gates.json`, `curves.csv` and `movers.csv`. The same inputs, config and seed give the same bytes in
all but the manifest. What differs each time, the id, the times, the machine, is in the manifest alone; what depends on
earlier evaluations, in the gates, the movers and the page.

`writing` and `reading` know the folder, `lines` the tables of text, `movers` the queries that moved, `scores` the table
of scores, `gates` the verdicts; `definitions` says what a measure means, `references` finds the record that is meant,
and `acceptance` keeps the list of those that were accepted.
"""

from pipeline.record.definitions import definitions
from pipeline.record.reading import read_curves, read_manifest, read_movers, read_record, refuse_changed
from pipeline.record.scores import read_column, read_query_ids, read_score, read_scores
from pipeline.record.store import Records, open_records
from pipeline.record.writing import Judged, new_evaluation_id, write_record

__all__ = [
    "Judged",
    "Records",
    "definitions",
    "new_evaluation_id",
    "open_records",
    "read_column",
    "read_curves",
    "read_manifest",
    "read_movers",
    "read_query_ids",
    "read_record",
    "read_score",
    "read_scores",
    "refuse_changed",
    "write_record",
]
