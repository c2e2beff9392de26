"""Selection of rows: filters, near-duplicates of held-out rows, and the splitting off of validation and test."""

import hashlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.data.corpus import Check, Corpus, LeftOut, PlacedRow, Row, checked_rows, write_corpus
from transformer.data.leakage import TrigramSets, WordNumbers, find_duplicates
from transformer.data.sources import Download

Reader = Callable[[], Iterator[PlacedRow]]
Group = Callable[[Row], Any]


def hold_out(
    read: Reader, *, fraction: float, block: int, seed: int | str, label: Group, text: Group, leaf: str
) -> tuple[Reader, Reader]:
    """Split the rows that `read` streams into (kept, held out), keeping their order, in eight bytes per row.

    Per `label`, the rows with the smallest keys are held out, a key being a hash of the seed and the `text`:
    identical texts of a label stay together, so that none is in both splits. With a `block` above 1, the number of
    the row's block in the source is hashed instead, whatever was left out or held out before: if the source lists
    the texts about one subject consecutively, as IMDB does for films, nearly all of them go to one side, and the
    held-out texts are as new to the model as a test.
    leaf: the parameter with the fraction, for the message. The readers raise UserError when either side would have no
    row of some label.
    """

    def keyed() -> Iterator[tuple[int, PlacedRow]]:
        return ((_key(text(row) if block == 1 else row.place // block, seed), row) for row in read())

    bounds: dict[Any, int] = {}

    def select(*, held_out: bool) -> Iterator[PlacedRow]:
        if not bounds:
            bounds.update(_bounds(keyed(), fraction=fraction, label=label, leaf=leaf))
        return (row for key, row in keyed() if (key < bounds[label(row)]) is held_out)

    return partial(select, held_out=False), partial(select, held_out=True)


def _key(group: str | int, seed: int | str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}\t{group}".encode()).digest()[:8])


def _bounds(keyed: Iterator[tuple[int, PlacedRow]], *, fraction: float, label: Group, leaf: str) -> dict[Any, int]:
    """Return, by label, the key below which rows are held out."""
    keys: dict[Any, array[int]] = defaultdict(lambda: array("Q"))
    for key, row in keyed:
        keys[label(row)].append(key)
    bounds = {}
    for name, found in keys.items():
        ordered = np.frombuffer(found, dtype=np.uint64)
        ordered.sort()  # in place: a list would take several times the memory
        bound = int(ordered[min(max(round(len(ordered) * fraction), 1), len(ordered) - 1)])
        if bound == int(ordered[0]):
            which = "" if name is None else f" with the label {name}"
            rows = "row" if len(ordered) == 1 else "rows"
            raise UserError(
                f"{len(ordered)} {rows}{which}: too few or too alike to hold out {fraction} of them; change `{leaf}` or"
                " `validation_block`, correct a misspelt label, or give the corpus a split of its own"
            )
        bounds[name] = bound
    return bounds


_TRAIN = "train"
NEAR = "nearly equals a row held out"
"""Reason for leaving out a training row, in the log and in provenance.json."""
JUDGED = "equals or nearly equals a text that another task is judged by"
"""Reason for leaving out a training row."""
OWN = "equals or nearly equals a text of its own validation or test"
"""Reason for leaving out a training row."""
SEEN = "equals or nearly equals a text of validation or test"
"""Reason for leaving out an unlabelled row."""
JUDGING = "equals or nearly equals a row of validation or test"
"""Reason for leaving out an added row."""
ADDED = "rows added"
"""Label for the number of added rows in reports. No split has such a name: the Hub's are single words."""
_WAYS_OUT = {
    NEAR: "set `near_duplicates` to keep, hold out blocks of neighbours with `validation_block`, or give the corpus"
    " splits of its own",
    JUDGED: "give it other texts, or set `held_out` to data/local/none",
    OWN: "give it other texts, or set `unsupervised` to false",
    SEEN: "give it other texts, or set `unsupervised` to false",
    JUDGING: "add others, or set `added` to data/local/none",
}
_CHUNK = 20_000  # training rows compared with the held-out ones at a time


class Selection:
    """The rows of a corpus's splits, and the rows left out."""

    def __init__(
        self,
        corpus: Corpus,
        section: Download,
        *,
        unfit: Callable[[Row], str | None] = lambda row: None,
        judged: Sequence[Callable[[], Iterator[Row]]] = (),
        unlabelled: str | None = None,
        own: Sequence[str] = (),
    ) -> None:
        """unfit: says why a training row is to be left out; None if it is not.

        judged: rows of other corpora that no training row may equal, exactly or nearly; unlabelled: the split, if the
        corpus has it, none of whose rows may equal one of its own validation and test rows; own: splits of the corpus
        that no training row may equal either.
        """
        self._corpus, self._section, self._unfit, self._judged = corpus, section, unfit, judged
        self._unlabelled, self._own = unlabelled, own
        self.left_out: dict[str, LeftOut] = {}
        """Left-out rows by split, in the first reading: a split with held-out rows is read several times."""
        self.labels: dict[str, Counter[Any]] = {}
        """Written rows by split and label."""
        self._held_out: dict[str, float] = {}
        self._added = 0
        """Added training rows that were written."""
        self._seen: set[bytes] = set()
        """Training rows of the latest reading that others may not repeat."""

    def write(
        self,
        output: Path,
        check_of: Callable[[str], Check],
        *,
        label: Group,
        text: Group,
        finish: Callable[[Path], Mapping[str, Any]] = lambda folder: {},
        observer: Observer,
    ) -> dict[str, float]:
        """Write the corpus into the folder `output`; return the rows per split. Otherwise as `splits`.

        What was skipped is reported also where the rest is refused.

        finish: called with the folder that holds the rows before they replace what was there; returns what it adds to
        the provenance.
        """
        splits = self.splits(check_of, label=label, text=text)
        try:
            counts = write_corpus(
                output,
                {split: self._counted(split, rows, label) for split, rows in splits.items()},
                origin=self._corpus.origin,
                more=lambda folder: {**self.provenance(), **finish(folder)},
                expected_sha256=self._section.expected_sha256,
                observer=observer,
            )
        except UserError:
            if self._section.bad_rows == "skip":
                self.report(observer)
            raise
        self.report(observer)
        return counts

    def splits(self, check_of: Callable[[str], Check], *, label: Group, text: Group) -> dict[str, Iterator[Row]]:
        """Return the rows of every split; test and validation are held out of train if the corpus lacks them.

        check_of: the check of a split's rows; label, text: as in `hold_out`. Raises UserError, as do the iterators.
        """
        section, extra = self._section, self._unlabelled or ""
        readers: dict[str, Reader] = {
            split: partial(self.read, split, check_of(split)) for split in self._corpus.splits
        }
        for split, fraction, seed in (
            ("test", section.test_fraction, f"{section.seed}, test"),
            ("validation", section.validation_fraction, section.seed),
        ):
            if split not in readers:
                self._held_out[split] = fraction
                readers[_TRAIN], readers[split] = hold_out(
                    readers[_TRAIN],
                    fraction=fraction,
                    block=section.validation_block,
                    seed=seed,
                    label=label,
                    text=text,
                    leaf=f"{split}_fraction",
                )
        judging = [read for split, read in readers.items() if split not in (_TRAIN, extra)]
        held_out = [readers[split] for split in self._held_out] if section.near_duplicates == "leave_out" else []
        own = [readers[split] for split in self._own]
        for split, others, reason in (
            (_TRAIN, held_out, NEAR),
            (_TRAIN, self._judged, JUDGED),
            (_TRAIN, own, OWN),
            (extra, judging, SEEN),
        ):
            if others and split in readers:
                readers[split] = partial(self._unlike, split, readers[split], others, reason)
        if self._corpus.added:
            read = partial(self.read, ADDED, check_of(_TRAIN))
            further = partial(self._unlike, ADDED, read, [*judging, *self._judged], JUDGING)
            readers[_TRAIN] = partial(self._followed, readers[_TRAIN], further)
        return {split: read() for split, read in readers.items()}

    def _unlike(
        self, split: str, read: Reader, others: Sequence[Callable[[], Iterator[Row]]], reason: str
    ) -> Iterator[PlacedRow]:
        """Yield a split's rows without those that equal or nearly equal another row, as `evaluate` measures it."""
        left, kept, numbers = 0, 0, WordNumbers()
        rows = [row for each in others for row in each()]
        columns = [name for name, value in rows[0].items() if isinstance(value, str)] if rows else []
        seen = {name: TrigramSets.of([row[name] for row in rows], numbers) for name in columns}
        stream = read()
        while chunk := list(islice(stream, _CHUNK)):
            alike = np.zeros(len(chunk), dtype=bool)
            for name, sets in seen.items():
                alike |= find_duplicates(TrigramSets.of([row[name] for row in chunk], numbers), sets).any
            left += int(alike.sum())
            kept += int((~alike).sum())
            yield from (row for row, left_out in zip(chunk, alike, strict=True) if not left_out)
        if left:
            self.left_out[split].counts[reason] = left
        if left and not kept:
            raise UserError(f"{split}: every row {reason}: {_WAYS_OUT[reason]}")

    def _counted(self, split: str, rows: Iterator[Row], label: Group) -> Iterator[Row]:
        counts = self.labels[split] = Counter()
        for row in rows:
            counts[label(row)] += 1
            yield row

    def read(self, split: str, check: Check) -> Iterator[PlacedRow]:
        """Stream a split's rows. Raises UserError, one line, for a bad row if `bad_rows` is `stop`."""
        left_out = LeftOut(self._section.bad_rows)
        self.left_out.setdefault(split, left_out)
        parts = self._corpus.added if split == ADDED else self._corpus.splits[split]
        if split == _TRAIN:
            self._seen = set()
        rows = checked_rows(parts, check, left_out)
        yield from self._chosen(rows, left_out) if split in (_TRAIN, ADDED) else rows

    def _followed(self, read: Reader, further: Reader) -> Iterator[PlacedRow]:
        """Yield the training rows, then the added ones."""
        yield from read()
        self._added = 0
        for self._added, row in enumerate(further(), start=1):
            yield row

    def _chosen(self, rows: Iterator[PlacedRow], left_out: LeftOut) -> Iterator[PlacedRow]:
        longest = self._section.max_words
        for row in rows:
            texts = [value for value in row.values() if isinstance(value, str)]
            if longest is not None and any(len(text.split()) > longest for text in texts):
                left_out.add(row.where, "longer than max_words")
                continue
            if reason := self._unfit(row):
                left_out.add(row.where, reason)
                continue
            if self._section.deduplicate:
                key = hashlib.blake2b("\t".join(map(str, row.values())).encode(), digest_size=8).digest()
                if key in self._seen:
                    left_out.add(row.where, "repeats an earlier row")
                    continue
                self._seen.add(key)
            yield row

    def provenance(self) -> dict[str, Any]:
        """Return the additions to provenance.json: none if every row was kept in its original split."""
        counts = {split: dict(each.counts) for split, each in self.left_out.items() if each.counts}
        found = {"held_out": self._held_out, "left_out": counts, "added_rows": self._added}
        return {name: content for name, content in found.items() if content}

    def report(self, observer: Observer) -> None:
        """Report what is ignored, held out, and left out with its first ten places."""
        if self._corpus.ignored:
            observer.say(f"ignored, since their names are of no layout: {', '.join(self._corpus.ignored)}")
        for split, fraction in self._held_out.items():
            observer.say(f"{split}: the corpus has no such split, so {fraction:g} of train is held out")
        if self._added:
            observer.say(f"{_TRAIN}: {self._added:,} of its rows are added")
        for split, each in self.left_out.items():
            for line in each.lines(split):
                observer.say(line)
