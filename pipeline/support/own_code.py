"""Custom code, named by a config or an entry point or passed as an object, with a version or hash.

A file is loaded under a private name, and its bytes are read once, so that the hashed code is the code that runs.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import inspect
import json
import marshal
import re
import sys
import threading
import traceback
from contextlib import AbstractContextManager, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tokenize import TokenError
from types import ModuleType

from rankledger.pipeline.support.errors import shorten

_REFERENCE = re.compile(r"(?P<module>[^:]+\.py|[^\W\d]\w*(\.[^\W\d]\w*)*):(?P<name>[^\W\d]\w*)")
_PRIVATE = "rankledger_own"


@dataclass(frozen=True)
class CodePlace:
    """Location of custom code."""

    module: str  # absolute path of a `.py` file, or a module. Empty for an object in memory
    name: str
    sha256: str = ""  # hex digest of the file. Empty for a module

    @property
    def file(self) -> str:
        """Path of the file, also of an imported module. Empty if there is none."""
        return self.module if self.sha256 else getattr(sys.modules.get(self.module), "__file__", None) or ""


@dataclass(frozen=True)
class OwnCode:
    """Loaded code. The version is `sha256:…`, or a distribution and its version."""

    place: CodePlace
    value: object
    version: str


def find_code(reference: str, directory: Path) -> OwnCode:
    """Load the code of a reference. Raise ValueError if it does not exist or fails.

    A reference is `clicks:click_value`, from `clicks.py` in the config's folder or the module `clicks`, or
    `../lib/clicks.py:click_value`.
    """
    written = _REFERENCE.fullmatch(reference)
    if written is None:
        raise ValueError(f"found {reference!r}; write module:function, such as clicks:click_value")
    module, name = written["module"], written["name"]
    if path := code_file(reference, directory):
        return _load_file(path, name)
    place = CodePlace(module, name)
    try:
        found = _import_module(module)
    except ModuleNotFoundError as error:
        if error.name and not f"{module}.".startswith(f"{error.name}."):
            raise ValueError(f"{module} cannot be imported: {reason_of(error)}") from None
        raise ValueError(
            f"module {module!r} not found: {module}.py is not in {directory}, and no such module is installed"
        ) from None
    return OwnCode(place, _find_name(found, place), _find_version(found, _find_owner(found)))


def hold_code(value: object, function: object) -> OwnCode:
    """Return code in memory. `function` is the function whose source and closure are hashed."""
    function = inspect.unwrap(function)  # type: ignore[arg-type]
    module = sys.modules.get(str(getattr(function, "__module__", "")))
    enclosed = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    try:
        source = inspect.getsource(function).encode()  # type: ignore[arg-type]
    except (OSError, TypeError, SyntaxError, TokenError):  # as of a function that was typed at a prompt
        source = marshal.dumps(getattr(function, "__code__", None))
    name = next((name for name, each in vars(module).items() if each is value), "") if module else ""
    place = CodePlace("", name or str(getattr(function, "__name__", type(function).__name__)))
    return OwnCode(place, value, _hash_source(source + repr(enclosed).encode()))


def installed(group: str) -> tuple[str, ...]:
    """Return the sorted names in a group of entry points."""
    return tuple(sorted(importlib.metadata.entry_points(group=group).names))


def owners(group: str, name: str) -> tuple[str, ...]:
    """Return the packages, with versions, that have a name in a group of entry points. Import none."""
    found = importlib.metadata.entry_points(group=group, name=name)
    return tuple(sorted({_write_title(entry.dist) for entry in found} - {""}))


def find_installed(group: str, name: str) -> OwnCode | None:
    """Load the code of an entry point. None if there is none. Raise ValueError if there are several or it fails."""
    found = {
        (entry.value, _write_title(entry.dist)): entry
        for entry in importlib.metadata.entry_points(group=group, name=name)
    }
    if len(found) > 1:
        titles = ", ".join(owner for _, owner in sorted(found))
        raise ValueError(f"several installed packages name it: {titles}; uninstall all but one")
    for (value, _), entry in found.items():
        written = _REFERENCE.fullmatch(value)
        if written is None or value.partition(":")[0].endswith(".py"):
            raise ValueError(f"its package has the entry point {value!r}, which is not module:function")
        place = CodePlace(written["module"], written["name"])
        try:
            module = _import_module(place.module)
        except ModuleNotFoundError as error:
            raise ValueError(f"{place.module} cannot be imported: {reason_of(error)}") from None
        return OwnCode(place, _find_name(module, place), _find_version(module, entry.dist))
    return None


def code_file(reference: str, directory: Path) -> Path | None:
    """Return the file of a reference, even if it does not exist. None for an importable module."""
    module, _, _ = reference.rpartition(":")
    if module.endswith(".py"):
        return directory / module
    path = directory / f"{module.replace('.', '/')}.py"
    return path if path.is_file() else None


def load_code(place: CodePlace) -> object:
    """Load code again in another process. Raise ValueError if it has changed."""
    if not place.sha256:
        return _find_name(_import_module(place.module), place)
    found = _load_file(Path(place.module), place.name)
    if found.place != place:
        raise ValueError(f"{place.module} changed while it was in use; evaluate again")
    return found.value


def reason_of(error: BaseException, file: str = "") -> str:
    """Return an error of custom code in one line, with the last line of `file` in its traceback."""
    text = " ".join(str(error).split())
    said = shorten(f"{type(error).__name__}: {text}" if text else type(error).__name__)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f"{said} ({Path(file).name}, line {lines[-1]})" if lines else said


class _Output(AbstractContextManager[None]):
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_inside = 0
        self._diverted = redirect_stdout(sys.stderr)

    def __enter__(self) -> None:
        with self._lock:
            self._n_inside += 1
            if self._n_inside == 1:
                self._diverted = redirect_stdout(sys.stderr)
                self._diverted.__enter__()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if not self._n_inside:
                self._diverted.__exit__(None, None, None)


_OUTPUT = _Output()


def divert_output() -> AbstractContextManager[None]:
    """Redirect prints to standard error, because standard output is for results."""
    return _OUTPUT


def _load_file(path: Path, name: str) -> OwnCode:
    path = Path(path).absolute()
    try:
        source = path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"file not found: {path}; check the path") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    digest = hashlib.sha256(source).hexdigest()
    place = CodePlace(str(path), name, digest)
    return OwnCode(place, _find_name(_execute_source(path, source, digest), place), _hash_source(source))


_LOADING = threading.RLock()


def _execute_source(path: Path, source: bytes, digest: str) -> ModuleType:
    known = hashlib.sha256(str(path).encode(errors="surrogateescape")).hexdigest()[:8]
    private = f"{_PRIVATE}_{path.stem}_{known}{digest[:16]}"
    with _LOADING:
        if private in sys.modules:
            return sys.modules[private]
        module = ModuleType(private)
        module.__file__ = str(path)
        sys.modules[private] = module  # dataclasses and annotations look their module up there
        try:
            with divert_output():
                exec(compile(source, str(path), "exec"), module.__dict__)  # a config that names code runs it
        except (Exception, SystemExit) as error:
            del sys.modules[private]
            raise ValueError(f"{path} cannot be loaded: {reason_of(error, str(path))}") from None
        return module


def _import_module(name: str) -> ModuleType:
    try:
        with divert_output():
            return importlib.import_module(name)
    except ModuleNotFoundError:
        raise
    except (Exception, SystemExit) as error:
        raise ValueError(f"{name} cannot be imported: {reason_of(error)}") from None


def _find_name(module: ModuleType, place: CodePlace) -> object:
    if not hasattr(module, place.name):
        raise ValueError(f"{place.module} has no {place.name!r}; check the name")
    return getattr(module, place.name)


def _find_owner(module: ModuleType) -> importlib.metadata.Distribution | None:
    """Return the distribution of a module. None if several share its package."""
    owners = set(importlib.metadata.packages_distributions().get(module.__name__.partition(".")[0], ()))
    return importlib.metadata.distribution(owners.pop()) if len(owners) == 1 else None


def _write_title(distribution: importlib.metadata.Distribution | None) -> str:
    return f"{distribution.name} {distribution.version}" if distribution else ""


def _find_version(module: ModuleType, owner: importlib.metadata.Distribution | None) -> str:
    if owner is not None:
        origin = json.loads(owner.read_text("direct_url.json") or "{}")
        if not origin.get("dir_info", {}).get("editable"):
            return _write_title(owner)
    return _hash_module(module)


@cache
def _hash_module(module: ModuleType) -> str:
    """Return the hash of a source as first seen, because no process imports an edited file again."""
    file = getattr(module, "__file__", None)
    if not (file and file.endswith(".py")):
        raise ValueError(f"{module.__name__} has neither a version nor source to be known by; install it as a package")
    return _hash_source(Path(file).read_bytes())


def _hash_source(source: bytes) -> str:
    return f"sha256:{hashlib.sha256(source).hexdigest()[:16]}"
