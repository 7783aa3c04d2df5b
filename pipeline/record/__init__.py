"""The record of an evaluation, the source of truth: a folder, completed under a temporary name and then renamed.

It holds `config.yaml`, `manifest.json`, `scores.parquet`, `summary.csv` and `report.html`, and if there are any
`agreement.csv`, `comparisons.csv`, `gates.json`, `curves.csv`, `movers.csv`, `queries.json` and `changes.html`. The
same inputs, config and seed give the same bytes in all but the manifest, which alone has the id, the times and the
machine. Gates, query changes and pages also depend on earlier evaluations. Delivery and promotion add `receipt.json`
and `promotion.json`, which the manifest does not list.
"""
