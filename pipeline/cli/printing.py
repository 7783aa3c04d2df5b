"""Printing results on stdout, and remarks on stderr."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

import click

__all__ = ["print_bytes", "print_remark", "print_text", "unread_is_fine", "width"]


def print_text(text: str) -> None:
    """Print on stdout."""
    with unread_is_fine(sys.stdout):
        click.echo(text.rstrip("\n"))
        sys.stdout.flush()


def print_bytes(texts: Iterable[str]) -> None:
    """Write texts on stdout as they are, in UTF-8 wherever it goes: other programs compare the bytes."""
    with unread_is_fine(sys.stdout):
        sys.stdout.buffer.writelines(text.encode(errors="surrogateescape") for text in texts)
        sys.stdout.flush()


def print_remark(remark: object) -> None:
    """Print what is worth knowing on stderr."""
    with unread_is_fine(sys.stderr):
        click.echo(remark, err=True)


def width() -> int:
    """The terminal's columns; a pipe gets enough for the first few measures."""
    return shutil.get_terminal_size(fallback=(120, 24)).columns


@contextmanager
def unread_is_fine(stream: TextIO) -> Iterator[None]:
    """A reader that has gone, as in `rankledger … 2>&1 | head`, is no error; no error of a stream is met twice.

    What could not be written would be tried again when the process ends, and change its exit code.
    """
    try:
        yield
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError):
            raise
