"""The record of an evaluation, the source of truth: a folder, completed under a temporary name and then renamed.

It holds `config.yaml`, `manifest.json`, `scores.parquet`, `summary.csv` and `report.html`; and, where there are any,
`agreement.csv`, `comparisons.csv`, `gates.json`, `curves.csv`, `movers.csv`, `queries.json` and `changes.html`, what
changed since the night before. The same inputs, config and seed give the same bytes in all but the manifest.
What differs each time, the id, the times, the machine, is in the manifest alone; what depends on earlier evaluations,
in the gates, the query changes and the pages. Delivery and promotion add `receipt.json` and `promotion.json`, which the
manifest does not list.

`folder` writes and reads a record, `tables` its text files, checked by their hashes, and `scores` its scores. `store`
knows where records are kept and what MLflow has of them, `lookup` finds one, also by what was accepted, `nights` claims
nightly evaluations, and `retention` says which records may be deleted.
"""
