"""The one answer to whether two results can be compared."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

OPTIONAL = ("documents", "interactions", "clusters")
"""Kinds that only some measures need."""


@dataclass(frozen=True)
class InputChange:
    """A difference between what two results rest on.

    Attributes:
        kind: `judgments` and how they are read; `excluded documents`; `documents`, `interactions`, `clusters` or
            `queries`, if the measure needs them; the `definition` of the measure, with the code of a custom metric; or
            the version of `rankledger`.
        before: Digest, fingerprint or version of the earlier result. None if there was none.
        after: The same of the later result.
    """

    kind: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Comparability:
    """Everything besides model outputs that the scores of a measure on a dataset rest on.

    Attributes:
        parts: Digest or fingerprint by kind, as in `InputChange`. A part that the measure does not need is missing.
    """

    parts: Mapping[str, str]

    @classmethod
    def select(cls, digests: Mapping[str, str], needs: Collection[str], fingerprint: str) -> Comparability:
        """Return what a measure rests on.

        Args:
            digests: Digests of the dataset, by kind.
            needs: Kinds that only some measures need, and this one does.
            fingerprint: Definition of the measure.
        """
        parts = {kind: digest for kind, digest in digests.items() if kind not in OPTIONAL or kind in needs}
        return cls({**parts, "definition": fingerprint})

    @classmethod
    def combine(cls, by_dataset: Mapping[str, Comparability]) -> Comparability:
        """Return the comparability of a mean over several datasets."""
        kinds = dict.fromkeys(kind for one in by_dataset.values() for kind in one.parts)
        return cls(
            {
                kind: ", ".join(
                    f"{name} {one.parts[kind]}" for name, one in sorted(by_dataset.items()) if kind in one.parts
                )
                for kind in kinds
            }
        )

    def differences(self, later: Comparability) -> tuple[InputChange, ...]:
        """Return what differs in a later result. Two results can be compared if nothing does."""
        kinds = dict.fromkeys((*self.parts, *later.parts))
        changes = (InputChange(kind, self.parts.get(kind), later.parts.get(kind)) for kind in kinds)
        return tuple(change for change in changes if change.before != change.after)
