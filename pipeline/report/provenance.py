"""What asked for an evaluation, as it is asked for again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["asked_for"]


def asked_for(manifest: Mapping[str, Any]) -> str:
    """The command that makes the same figures: without what says where and how fast, as `--runs-dir` and `--jobs` do.

    Args:
        manifest: what the record's `manifest.json` holds. A call of Python stands as it is, and so does a command where
            it is not said where the config was.
    """
    command = str(manifest["command"])
    if not command.startswith("rankledger ") or not manifest["config"]:
        return command
    words = shlex.split(command)
    date = ["--date", manifest["date"]] if manifest["date"] else []
    return shlex.join([*words[:2], manifest["repeats"] or manifest["config"], *_overrides(words), *date])


def _overrides(words: Sequence[str]) -> Iterator[str]:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "--set":
            yield from (word, following)
        elif word.startswith("--set="):
            yield word
