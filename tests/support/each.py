"""One test over many small cases: a test of its own costs pytest and its workers more than such a case takes."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Test = Callable[..., None]


def each(name: str, cases: Iterable[Any] | Mapping[str, Any]) -> Callable[[Test], Test]:
    named = dict(cases) if isinstance(cases, Mapping) else {repr(case): case for case in cases}
    assert named

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def over_all(**fixtures: Any) -> None:
            for words, case in named.items():
                try:
                    test(**{name: case}, **fixtures)
                except BaseException as error:
                    error.add_note(f"{name}: {words}")
                    raise

        signature = inspect.signature(test)
        others = [parameter for parameter in signature.parameters.values() if parameter.name != name]
        over_all.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return over_all

    return decorate
