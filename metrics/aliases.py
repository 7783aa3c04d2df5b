"""Other tools' names of measures, and what they are here.

A table for each tool, a line for each meaning. In a name, `#` stands for a number: `rbp.#` is ranx's `rbp.95`. A name
without `#` may have parameters and a cutoff after it, in any tool's way: `AP(rel=2)@10`, `P_10`, `ndcg_cut.5,10`,
`map@100-l2`. The spelling is exact: `hits` counts, `hit` does not. Where tools mean different things by one name, it
has the meaning of trec_eval and ir_measures, and what the other tool does is said beside it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rankledger.metrics import aliases_of_recommenders as recommenders
from rankledger.metrics import aliases_of_search as search
from rankledger.metrics.alias import UNCUT, Alias, Tool
from rankledger.metrics.alias import means as _is
from rankledger.metrics.alias import refused as _no
from rankledger.metrics.alias import several as _all
from rankledger.metrics.registry import METRICS

__all__ = ["ALIASES", "TOOLS", "Alias", "Tool", "translate"]


_LENGTHS = "it needs the length, or reading time, of every document above, judged or not, which no table here has"
_SESSIONS = "it needs the order of the queries of a session, which no table here has; dcg@# is of each query"
_ILD = "it is diversity here; name the column of the documents that it compares, as in diversity(feature=genre)@#"

_PROSE = {
    **_all("average_precision mean_average_precision", _is("ap")),
    **_all("reciprocal_rank mean_reciprocal_rank", _is("rr", said=UNCUT)),
    **_all("prec PREC", _is("p")),
    **_all("hr hitrate hit_ratio", _is("success")),
    "f1_score": _is("f1"),
    **_all("ECE expected_calibration_error", _is("calibration_error")),
    "f_beta": _no("say how many times as important recall is: f(beta=2)@#"),
    "f_beta(beta=#)": _is("f(beta=#)"),
    "RBO": _is("rbo"),
    "ERR-IA": _is("err_ia"),
    "tau_ap": _is("ap_corr"),
    **_all("kendall tau", _is("kendall_tau")),
    **_all("U U-measure U_measure TBG time_biased_gain", _no(_LENGTHS)),
    **_all("sDCG nsDCG session_dcg", _no(_SESSIONS)),
    "coverage": _no("of the catalogue it is item_coverage@#, of queries user_coverage; write the one meant"),
    **_all("catalog_coverage catalogue_coverage", _is("item_coverage")),
    **_all("ild ILD intra_list_diversity intra_list_distance", _no(_ILD)),
}

TOOLS = (
    Tool("trec_eval, pytrec_eval, PyTerrier", "trec_eval 9.0.4 and 10.0-rc3", search.TREC_EVAL),
    Tool("ir_measures, PyTerrier", "ir_measures 0.4.3", search.IR_MEASURES),
    Tool("ndeval", "pyndeval 0.0.8", search.NDEVAL),
    Tool("NTCIREVAL, pyNTCIREVAL", "pyNTCIREVAL 0.0.3", search.NTCIREVAL),
    Tool("ranx", "ranx 0.3.21", search.RANX),
    Tool("BEIR", "beir 2.2", search.BEIR),
    Tool("MTEB", "mteb 2.26", search.MTEB),
    Tool("sentence-transformers", "sentence-transformers 5.2", search.SENTENCES),
    Tool("MLflow", "mlflow 3.17", recommenders.MLFLOW),
    Tool("scikit-learn", "scikit-learn 1.9", recommenders.SKLEARN),
    Tool("torchmetrics", "torchmetrics 1.9", recommenders.TORCHMETRICS),
    Tool("Kaggle", "ml_metrics 0.1.4", recommenders.KAGGLE),
    Tool("RecBole", "recbole 1.2.1", recommenders.RECBOLE),
    Tool("Cornac", "cornac 2.6", recommenders.CORNAC),
    Tool("LensKit", "lenskit 2026", recommenders.LENSKIT),
    Tool("RecTools", "rectools 0.17", recommenders.RECTOOLS),
    Tool("Elliot", "elliot 0.3.1", recommenders.ELLIOT),
    Tool("WarpRec", "warprec 1.4", recommenders.WARPREC),
    Tool("Open Bandit Pipeline", "obp 0.5.5", recommenders.OBP),
    Tool("In words", "no tool in particular", _PROSE),
)

ALIASES: Mapping[str, Alias] = MappingProxyType(
    {name: alias for tool in reversed(TOOLS) for name, alias in tool.names.items()}
)
"""Every name once; where several tools have it, they are of one mind about `ours`, and the first one's words stand."""

_TEXT = re.compile(
    r"(?P<name>[^\s(@]+?)\s*(\((?P<parameters>.*)\))?\s*(@\s*(?P<cutoff>[^()@]*?))?(-l(?P<level>\d+))?(?P<mean>/mean)?",
    re.ASCII,
)
_NUMBERED = re.compile(r"(.+?)([._])(-?\.?\d[\d.,-]*)", re.ASCII)  # P_10, set_F.1.0, utility.1,-1,0,0
_INNER = re.compile(r"(.+_at_)(\d+)(_[a-z]\w*)", re.ASCII)  # nauc_ndcg_at_10_max
_PAIRED = re.compile(r"(.+?)[._](\w+)=(.+)", re.ASCII)  # rbp.p=0.9, ndcg.1=3.5,2=9
_ITEMS = re.compile(r",(?![^\[{]*[\]}])")  # commas outside brackets and braces
_MEASURE = re.compile(r"(\w+)(?:\((.*)\))?(@.*)?")
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_CUTOFFS = frozenset({"cutoff", "k", "n", "top_k"})
_JUDGED_ONLY = Alias((), "to leave unjudged documents out, write conventions: {unjudged_documents: condensed} instead")


@dataclass(frozen=True)
class _Reading:
    """One way to read a text: the key among the aliases, the bare name, and what was written after it."""

    key: str
    name: str
    cutoff: str | None = None
    number: str | None = None


def translate(text: str) -> tuple[str, ...]:
    """The measures that a name of another tool stands for, as we write them; `text` itself where it is ours or unknown.

    Raises:
        ValueError: the name means what is not here; the message says so, and what to write instead.
    """
    written = text.strip()
    found = _TEXT.fullmatch(written)
    if found and found["name"] in METRICS and not (found["level"] or found["mean"]):
        return (text,)
    for key, alias in ALIASES.items():
        if key.endswith("*") and written.startswith(key[:-1]):
            raise _refusal(written, alias, None)
    if found is None:
        return (text,)
    parameters = [*_parameters(found["parameters"]), *([("rel", found["level"])] if found["level"] else [])]
    readings = _readings(found["name"], found["cutoff"], found["level"])
    reading = next((reading for reading in readings if reading.key in ALIASES), None)
    return (text,) if reading is None else _ours(written, reading, parameters)


def _readings(name: str, cutoff: str | None, level: str | None) -> Iterator[_Reading]:
    """All ways to read a name, the likeliest first."""
    if level:
        yield _Reading(f"{name}-l#", name, cutoff)
    if cutoff is not None:
        yield _Reading(f"{name}@#", name, number=cutoff)
    yield _Reading(name, name, cutoff)
    if (numbered := _NUMBERED.fullmatch(name)) and cutoff is None:
        stem, mark, number = numbered.groups()
        for sign in dict.fromkeys([mark, "_"]):
            yield _Reading(f"{stem}{sign}{re.sub('[^,]+', '#', number)}", stem, number=number)
            yield _Reading(f"{stem}{sign}#", stem, number=number)
        yield _Reading(stem, stem, number)
    if inner := _INNER.fullmatch(name):
        yield _Reading(f"{inner[1]}#{inner[3]}", name, cutoff, inner[2])
    if paired := _PAIRED.fullmatch(name):
        stem, key, number = paired.groups()
        yield _Reading(f"{stem}.{'#' if key.isdecimal() else key}=#", stem, cutoff, number)


def _parameters(text: str | None) -> Iterator[tuple[str, str]]:
    """The parameters that were written, their values without Python's quotes."""
    for item in _ITEMS.split(text) if text and text.strip() else ():
        name, _, value = (part.strip() for part in item.partition("="))
        yield name, value.strip("'\"")


def _ours(text: str, reading: _Reading, parameters: list[tuple[str, str]]) -> tuple[str, ...]:
    """Our measures, with the parameters that were written and are not part of the name."""
    alias, number, cutoff = ALIASES[reading.key], reading.number, reading.cutoff
    kept = []
    for name, value in parameters:
        special = ALIASES.get(f"{reading.name}({name}={value})") or ALIASES.get(f"{reading.name}({name}=#)")
        if name == "judged_only":
            special = _JUDGED_ONLY if value == "True" else ALIASES[reading.key]
        if special is None and name in _CUTOFFS:
            cutoff = cutoff or value
        elif special is None:
            ours = alias.renamed.get(name, name)
            kept.append(f"{ours}={value}" if value else ours)
        elif special.ours != ALIASES[reading.key].ours:
            alias, number = special, value
    if not alias.ours:
        raise _refusal(text, alias, cutoff or number)
    return tuple(_written(measure, kept, cutoff) for measure in _numbered(text, alias.ours, number))


def _written(measure: str, parameters: list[str], cutoff: str | None) -> str:
    """One of our measures with these parameters in place of its own, and this cutoff in place of the usual ones."""
    metric, fixed, usual = _MEASURE.fullmatch(measure).groups(default="")  # type: ignore[union-attr]
    names = {item.partition("=")[0] for item in parameters}
    items = [item for item in fixed.split(",") if item and item.partition("=")[0] not in names] + parameters
    at = usual if cutoff is None else "" if cutoff == "-1" else f"@{cutoff}"  # Cornac's -1 is no cutoff
    return f"{metric}({','.join(items)}){at}" if items else f"{metric}{at}"


def _numbered(text: str, templates: tuple[str, ...], written: str | None) -> Iterator[str]:
    """The templates with what was written for `#`: once for each number, unless a template takes several."""
    for template in templates:
        if written is None or "#" not in template:
            yield template
        elif template.count("#") > 1:
            for number in written.split(","):
                template = template.replace("#", _number(number), 1)
            yield template
        else:
            for number in written.split(","):
                fill = _root(text, number) if "√#" in template else number if "0.#" in template else _number(number)
                yield template.replace("√", "").replace("#", fill)


def _number(text: str) -> str:
    """A number as we write it: `0.1` for `0.10`, `1` for `1.0`; anything else as it is, for the parser to refuse."""
    if not _FLOAT.fullmatch(text) or math.isinf(number := float(text)):
        return text
    return str(int(number) if number.is_integer() else number)


def _root(text: str, number: str) -> str:
    if not _FLOAT.fullmatch(number) or float(number) < 0:
        raise ValueError(f"'{text}': the square of beta is a number of at least 0, found '{number}'")
    return _number(str(math.sqrt(float(number))))


def _refusal(text: str, alias: Alias, cutoff: str | None) -> ValueError:
    return ValueError(f"'{text}': {alias.said.replace('@#', f'@{cutoff}' if cutoff else '')}")
