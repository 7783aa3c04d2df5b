"""Other names of our metrics, for suggestions: what people write who come from another tool."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["ALIASES"]

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "11pt_avg": "ap11",
        "average_precision": "ap",
        "catalog_coverage": "item_coverage",
        "catalogue_coverage": "item_coverage",
        "coverage": "item_coverage",
        "f_beta": "f",
        "f1_score": "f1",
        "hit_rate": "success",
        "hitrate": "success",
        "hr": "success",
        "iprec_at_recall": "iprec",
        "kendall": "kendall_tau",
        "map": "ap",
        "map_cut": "ap",
        "mean_absolute_error": "mae",
        "mean_squared_error": "mse",
        "mrr": "rr",
        "ndcg_cut": "ndcg",
        "prec": "p",
        "precision": "p",
        "r_precision": "rprec",
        "recall": "r",
        "recip_rank": "rr",
        "reciprocal_rank": "rr",
        "root_mean_squared_error": "rmse",
        "tau": "kendall_tau",
    }
)
