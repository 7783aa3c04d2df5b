"""Numbers from arrays: every metric of ranking, recommendation and rating prediction, as plain functions.

Conventions that hold in the whole package:

- a metric's first argument is a block: the judged documents that each query retrieved (`JudgedBlock`), the documents
  that it was given (`CatalogueBlock`) or its rating pairs (`RatingsBlock`). Its docstring names the options alone;
- one column is one query: matrices are `(H, Q)` or `(J, Q)`, results `(Q,)`, reductions run down axis 0 in order, so
  a query's score has the same bits with any other queries next to it;
- a rank is 1-based; padding has rank inf and grade NaN;
- a document is relevant when its grade is at least `rel`; a negative grade is pooled but unjudged and gains nothing;
- NaN means undefined. What an undefined query counts as is decided once, at aggregation, by the conventions.
"""
