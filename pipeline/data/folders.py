"""Folders as tools lay them out: the files of a folder that are the input of that name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rankledger.pipeline.config.sources import BEIR_TABLES
from rankledger.pipeline.support.errors import InputError

_QRELS = "qrels/"
_TEST = f"{_QRELS}test.tsv"
_CARDS = {"README.md", "dataset_dict.json", "dataset_info.json", "dataset_infos.json"}  # beside HuggingFace's Parquet
_SHARD = re.compile(r"(.*?)([^/]+)-(\d{5})-of-(\d{5})\.parquet")
_SPLITS = {"dev", "test", "train", "valid", "validation"}


def input_files(folder: str, names: Sequence[str]) -> list[str]:
    """Return the files of a folder that are one input: for BEIR the judgments of the test split, otherwise all data.

    Several splits or datasets, missing shards and Arrow files are InputErrors.
    """
    below = {name.removeprefix(folder.rstrip("/") + "/"): name for name in names}
    judged = sorted(name for name in below if name.startswith(_QRELS))
    if judged and {*BEIR_TABLES.values()} & below.keys():
        if _TEST in below or len(judged) == 1:
            return [below[_TEST if _TEST in below else judged[0]]]
        raise InputError(f"{folder}: holds judgments of several splits; name one, as in {below[judged[0]]}")
    several = sorted(name.partition(f"/{_QRELS}")[0] for name in below if f"/{_QRELS}" in name)
    if several:
        raise InputError(f"{folder}: holds folders of datasets; name one, such as {folder.rstrip('/')}/{several[0]}")
    data = [name for name in below if name not in _CARDS]
    if data and all(name.endswith(".parquet") for name in data):
        _refuse_splits(folder, data)
        return [below[name] for name in data]
    if any(name.endswith(".arrow") for name in data):
        raise InputError(f"{folder}: holds Arrow files, as of save_to_disk; write it with to_parquet")
    return list(names)


def _refuse_splits(folder: str, names: Sequence[str]) -> None:
    """Reject several splits, which would be one input, and missing shards."""
    shards: dict[tuple[str, str, str], set[int]] = {}
    for found in filter(None, map(_SHARD.fullmatch, names)):
        shards.setdefault((found[1], found[2], found[4]), set()).add(int(found[3]))
    splits = sorted({split for _, split, _ in shards} & _SPLITS)
    if len(splits) > 1:
        place = next(place for place, split, _ in shards if split == splits[0])
        one = f"{folder.rstrip('/')}/{place}{splits[0]}-*.parquet"
        raise InputError(f"{folder}: holds the splits {', '.join(splits)}; name one, as in {one}")
    for (place, split, n_all), numbers in shards.items():
        missing = sorted({*range(int(n_all))} - numbers)
        if missing:
            name = f"{place}{split}-{missing[0]:05}-of-{n_all}.parquet"
            raise InputError(f"{folder}: lacks {len(missing)} of {int(n_all)} shards, such as {name}; complete it")
