"""Reports as files, and those of the gates for the servers that build and test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.atomic import write_whole
from pipeline.report.verdicts import junit, markdown
from pipeline.verdicts import Verdict

__all__ = ["write_reports", "write_text"]


def write_reports(
    verdicts: Sequence[Verdict],
    *,
    name: str,
    junit_file: str | None = None,
    markdown_file: str | None = None,
    summary: str | None = None,
) -> None:
    """Write what was asked for.

    Args:
        verdicts: what the gates say.
        name: the evaluation's name.
        junit_file: where to write JUnit's XML.
        markdown_file: where to write Markdown.
        summary: the file that a server shows, to which Markdown is appended where there are verdicts.

    Raises:
        OSError: a file cannot be written.
    """
    if junit_file:
        write_text(Path(junit_file), junit(verdicts, name=name))
    if markdown_file:
        write_text(Path(markdown_file), markdown(verdicts, name=name))
    if summary and verdicts:
        with Path(summary).open("a", encoding="utf-8", errors="replace") as file:
            file.write(markdown(verdicts, name=name) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file under a temporary name, then rename it: who looks too early finds nothing, and not the half of it.

    Raises:
        OSError: the file cannot be written.
    """
    if path.exists() and not path.is_file():  # a device or a pipe, which cannot be replaced
        path.write_text(text, encoding="utf-8", errors="replace")
        return
    write_whole(path, text.encode(errors="replace"))
