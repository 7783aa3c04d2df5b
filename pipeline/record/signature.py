"""Signatures: what says that a record is the user's own, a small file beside it.

Whoever writes a record writes its manifest and can make all hashes fit. What they do not have is the user's key, which
lies outside every runs folder. So a record that was fetched, copied or unpacked has no valid signature, and nothing in
it chooses a server.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
from pathlib import Path

__all__ = ["is_own", "sign", "signature_name"]

_KEY_BYTES = 32


def signature_name(evaluation_id: str) -> str:
    """The name of its file."""
    return f"{evaluation_id}.signature"


def sign(path: Path) -> None:
    """Sign the record in that folder, by its manifest; the user's key is made if there is none.

    Raises:
        OSError: the key or the signature cannot be written; the record then counts as somebody else's.
    """
    path.with_name(signature_name(path.name)).write_text(f"{_signature(path, _made_key())}\n", encoding="ascii")


def is_own(path: Path) -> bool:
    """Whether the record in that folder has a valid signature of this user."""
    try:
        signature = path.with_name(signature_name(path.name)).read_bytes().strip()
        return hmac.compare_digest(signature, _signature(path, _key_file().read_bytes()).encode())
    except OSError:
        return False


def _signature(path: Path, key: bytes) -> str:
    return hmac.digest(key, (path / "manifest.json").read_bytes(), "sha256").hex()


def _made_key() -> bytes:
    """The key, which is written whole and then linked: of two processes that make one, both use the first."""
    file = _key_file()
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = file.with_name(f".{file.name}.{secrets.token_hex(4)}.partial")
        try:
            with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
                opened.write(secrets.token_bytes(_KEY_BYTES))
            with contextlib.suppress(FileExistsError):
                os.link(partial, file)
        finally:
            partial.unlink(missing_ok=True)
    return file.read_bytes()


def _key_file() -> Path:
    """`rankledger/key` in the user's state folder, as the XDG specification places it.

    Raises:
        OSError: the user has no home.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(state):  # noqa: PTH117 (an empty text is no path)
        return Path(state) / "rankledger" / "key"
    try:
        return Path.home() / ".local" / "state" / "rankledger" / "key"
    except RuntimeError as error:
        raise OSError(str(error)) from None
