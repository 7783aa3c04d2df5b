"""Model outputs by way of the block store: what was parsed once is taken from there, what is parsed is kept there.

The store never decides a figure: what it lacks, or what is damaged in it, is read from the output itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from metrics.conventions import Conventions
from pipeline.blocks import BlockStore, HitsKey, JudgmentsKey, StoreError
from pipeline.data.assemble import assemble
from pipeline.data.contents import content_of, describe, exists, size_of
from pipeline.data.inputs import DatasetInput, Source, read_output
from pipeline.data.rejoin import rejoin
from pipeline.errors import InputError
from pipeline.tables import Hits, InputFile, Joined, Quality

__all__ = ["OutputReader", "OutputStore", "Read", "rescored"]


@dataclass(frozen=True)
class OutputStore:
    """What the store keeps of the outputs on one dataset, under one set of conventions.

    Attributes:
        store: the store.
        judgments: the dataset's judgments.
        conventions: say what orders a ranking.
    """

    store: BlockStore
    judgments: JudgmentsKey
    conventions: Conventions

    def key(self, output: Source, files: Sequence[InputFile]) -> HitsKey:
        """The key of an output that consists, or consisted, of these files."""
        conventions = self.conventions
        return HitsKey.of(self.judgments, content_of(output, files), conventions.ties, conventions.score_precision)


@dataclass(frozen=True, eq=False)
class Read:
    """One model's output on a dataset with judgments or ratings.

    Attributes:
        files: those it consists of.
        joined: what its join with the judgments gives.
        parsed: whether its rows were parsed; if not, the store had what was asked for.
        remarks: what is worth saying of the store, a line each.
    """

    files: tuple[InputFile, ...]
    joined: Joined
    parsed: bool
    remarks: tuple[str, ...] = ()

    @property
    def quality(self) -> Quality:
        """What the join found."""
        return self.joined.quality


@dataclass(frozen=True, eq=False)
class OutputReader:
    """Reads models' outputs on a dataset.

    Attributes:
        dataset: the dataset.
        conventions: say what orders a ranking, and whether it may be incomplete.
        depth: the ranks down to which a measure asks which documents were recommended; 0 where none does.
        compared: the ranks down to which a measure compares rankings with another model's; 0 where none does.
        kept: what the store keeps of outputs on it; None where nothing is to be kept.
    """

    dataset: DatasetInput
    conventions: Conventions
    depth: float
    compared: float
    kept: OutputStore | None = None

    def read(self, output: Source, recorded: Sequence[InputFile] = (), *, allow_no_overlap: bool = False) -> Read:
        """One model's output: from the store if it is there and suffices, else from its files.

        Args:
            output: where the output is.
            recorded: the files of which it consisted, to be taken for it where it is gone.
            allow_no_overlap: whether it may have no query, document or pair of the dataset. Of one that has no judged
                document the store does not know which it has: unless it may, or is gone, it is read again.

        Raises:
            InputError: the output is missing or malformed.
        """
        gone = bool(recorded) and not exists(output)
        files = tuple(recorded) if gone else self._described(output)
        hits, remarks = self._find(output, files)
        if hits is not None and (hits.queries.size or gone or allow_no_overlap):
            joined = assemble(
                self.dataset.judgments, hits, self.conventions, self.dataset.n_documents, path=output.path
            )
            return Read(files, joined, parsed=False)
        if gone:
            raise InputError(f"{output.path}: no such file, and {self._lack(remarks)}; restore it")
        files, joined = read_output(
            self.dataset,
            output,
            self.conventions,
            with_catalogue=self.depth > 0,
            depth=self.depth,
            compared=self.compared,
            allow_no_overlap=allow_no_overlap,
        )
        return Read(files, joined, parsed=True, remarks=(*remarks, *self._keep(output, files, joined)))

    def keep_judgments(self) -> tuple[str, ...]:
        """Keep the dataset's judgments, without which nothing that is kept can be joined with others; the remarks."""
        if not self.kept:
            return ()
        try:
            self.kept.store.write_judgments(self.kept.judgments, self.dataset.judgments.rows)
        except StoreError as error:
            return (str(error),)
        return ()

    @property
    def _suffices(self) -> bool:
        """Whether judged documents are all that measures ask for."""
        return self.depth == 0 and self.compared == 0

    def _described(self, output: Source) -> tuple[InputFile, ...]:
        """The files of an output that the store may have; none where it certainly has not: parsing hashes them too."""
        if self.kept and self._suffices and self.kept.store.may_hold(self.kept.judgments, size_of(output)):
            return describe(output)
        return ()

    def _find(self, output: Source, files: Sequence[InputFile]) -> tuple[Hits | None, tuple[str, ...]]:
        """What the store has of the output, and the remarks on it."""
        if not (self.kept and self._suffices and files):
            return None, ()
        try:
            return self.kept.store.read_hits(self.kept.key(output, files)), ()
        except StoreError as error:
            return None, (str(error),)

    def _keep(self, output: Source, files: Sequence[InputFile], joined: Joined) -> tuple[str, ...]:
        """Keep what was found; the remarks on it."""
        if not self.kept or joined.hits is None:
            return ()
        try:
            self.kept.store.write_hits(self.kept.key(output, files), joined.hits)
        except StoreError as error:
            return (str(error),)
        return ()

    def _lack(self, remarks: Sequence[str]) -> str:
        """Why the store is no help."""
        if not self.kept:
            return "no block store has it"
        if not self._suffices:
            return "a measure asks for documents that are not judged"
        return remarks[0] if remarks else f"{self.kept.store.folder} has nothing of it"


def rescored(kept: OutputStore, output: Source, files: Sequence[InputFile], dataset: DatasetInput) -> Joined:
    """An output of an earlier evaluation, joined with the judgments of this one; the output need not be there.

    Args:
        kept: what the store keeps of outputs on the dataset as it was judged then.
        output: the output as the config of then names it.
        files: those of which it consisted, as the manifest of then has them.
        dataset: the dataset as it is judged now.

    Raises:
        InputError: the store has not what is needed, or a pair is judged now that was not judged then.
    """
    try:
        hits = kept.store.read_hits(kept.key(output, files))
        judgments = kept.store.read_judgments(kept.judgments)
    except StoreError as error:
        raise InputError(str(error)) from None
    if hits is None or judgments is None:
        raise InputError(f"{output.path}: {kept.store.folder} has nothing of it as it was; evaluate its config again")
    return rejoin(judgments, hits, dataset.judgments, kept.conventions, dataset.n_documents, path=output.path)
