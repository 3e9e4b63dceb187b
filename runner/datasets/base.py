"""What every dataset is, whatever its format: a corpus, queries, judgments, and their invariants.

A format's module reads its files into `Raw` and knows nothing more; `DatasetSource.load` checks, limits and assembles.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, InstanceOf, field_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Corpus, RepeatedIdError, RetrieverError
from retrievers.store import fingerprint
from runner.datasets.chunking import DOCUMENT, Chunking, Whole
from runner.datasets.own_documents import ExcludeSelf, own_documents
from runner.datasets.splits import SPLIT, splits_of
from runner.datasets.variants import cluster_labels

logger = logging.getLogger("runner.datasets")


class DatasetError(ValueError):
    """A dataset's files are missing, malformed or contradict each other. The message names file, line and field."""


Qrel = tuple[str, str, int]
"""A judgment as files have it: query id, document id, grade."""


EXPECTED_ANSWER = "expected_answer"
"""Where a query's metadata have the answer that it expects, in words."""


@dataclass(frozen=True, eq=False)
class Queries:
    """Questions in columns. `types` are the classes that results are also reported by ("" for none).

    `metadata` is what else is known of each, or empty. `clusters` are labels that variants of a query share ("" for a
    query that is a cluster of its own), or empty.
    """

    ids: Sequence[str]
    texts: Sequence[str]
    types: Sequence[str]
    metadata: Sequence[Mapping[str, Any]] = ()
    clusters: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class Judgments:
    """Grades of (query, document) pairs, as positions, sorted by query, then document (three int32 columns).

    A grade above 0 is gold, 0 is judged irrelevant (a hard negative). Documents that are judged but not in the corpus
    (kept on demand) have the positions from the corpus's size on.
    """

    queries: NDArray[np.int32]
    documents: NDArray[np.int32]
    grades: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.grades)

    def golds(self, n_queries: int) -> NDArray[np.int64]:
        """Return how many gold documents each query has (n)."""
        return np.bincount(self.queries[self.grades > 0], minlength=n_queries)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A corpus, the judged queries on it, and their judgments.

    `judgments_by_search_type` holds other expectations for retrievers of a given name; `unknown_documents` are ids
    that are judged but not in the corpus. Where the corpus are chunks, `whole` are the documents: judgments are of
    these, and a document is found where its first chunk is. Rankings are to leave out what queries are themselves:
    `exclude_self` says how that is told.
    """

    name: str
    split: str
    corpus: Corpus
    queries: Queries
    judgments: Judgments
    judgments_by_search_type: Mapping[str, Judgments] = field(default_factory=dict)
    unknown_documents: Sequence[str] = ()
    whole: Corpus | None = None
    exclude_self: ExcludeSelf = "auto"

    @cached_property
    def own_documents(self) -> NDArray[np.int32]:
        """Return the position of the document that each query is itself and that its ranking leaves out (n), or -1."""
        return own_documents(self.documents, self.queries, self.judgments, self.exclude_self)

    @property
    def documents(self) -> Corpus:
        """Return the documents that are judged: the corpus, or what its chunks are of."""
        return self.whole or self.corpus

    @cached_property
    def document_of(self) -> NDArray[np.int32] | None:
        """Return the position of each chunk's document; None where documents are searched whole."""
        if self.whole is None:
            return None
        at = {identifier: position for position, identifier in enumerate(self.whole.ids)}
        return np.array([at[parent] for parent in self.parents], dtype=np.int32)

    @cached_property
    def parents(self) -> Sequence[str]:
        """Return the id of each chunk's document; nothing where documents are searched whole."""
        return () if self.whole is None else [chunk[DOCUMENT] for chunk in self.corpus.metadata]

    @cached_property
    def judged_ids(self) -> Mapping[str, int]:
        """Return where the judgments have the documents that may be judged and are not searched, by id.

        These are the documents that the corpus lacks, and, where chunks are searched, the whole documents.
        """
        at = {} if self.whole is None else {name: place for place, name in enumerate(self.whole.ids)}
        return at | {name: len(self.documents) + place for place, name in enumerate(self.unknown_documents)}

    def chunked(self, chunking: Chunking) -> Dataset:
        """Return the same questions and judgments on chunks of the documents."""
        chunks = chunking.chunked(self.documents)
        return replace(self, corpus=chunks, whole=None if chunks is self.documents else self.documents)

    def judgments_for(self, search_type: str) -> Judgments:
        """Return what is expected of a retriever of this name."""
        return self.judgments_by_search_type.get(search_type, self.judgments)

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of all that a score is measured on: documents, queries, types, clusters and judgments.

        How documents are cut is no part of it: chunkings are compared by the same questions on the same documents.
        """
        texts = [
            f"{i}\0{t}\0{c}" for i, t, c in zip(self.queries.ids, self.queries.texts, self.queries.types, strict=True)
        ]
        grades = [("", self.judgments), *sorted(self.judgments_by_search_type.items())]
        columns = [
            f"{name}\0{column.astype('<i4').tobytes().hex()}"
            for name, judgments in grades
            for column in (judgments.queries, judgments.documents, judgments.grades)
        ]
        own = self.own_documents
        left_out = [f"own documents\0{own.astype('<i4').tobytes().hex()}"] if (own >= 0).any() else []
        clusters = self.queries.clusters
        variants = ["clusters", *clusters] if any(clusters) else []
        return fingerprint(
            "dataset", self.documents.fingerprint, *texts, *self.unknown_documents, *columns, *left_out, *variants
        )


@dataclass(frozen=True)
class Raw:
    """What a format's files say, before it is checked.

    `judged` are the queries that are judged even where no qrel names them (a right answer of nothing); qrels by search
    type replace `qrels` for the queries that they name. `qrels_name` says where the qrels are from, for messages.
    """

    corpus: Corpus
    queries: Queries
    qrels: Sequence[Qrel]
    judged: Iterable[str] = ()
    qrels_by_search_type: Mapping[str, Sequence[Qrel]] = field(default_factory=dict)
    qrels_name: str = "the judgments"


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class DatasetSource(ABC):
    """Settings that every source of a dataset has.

    `max_queries` and `max_documents` take a seeded sample for a quick look; judged documents are always kept.
    `unknown_judged` says what becomes of judged documents that the corpus does not have: refuse the dataset, keep them
    (only a service that has them can find them), or drop them, and with them the queries that are left with no gold
    document. `chunking` is how documents are cut into what is searched. Any path may have `{split}` in it, in the place
    of which `split` is read. `exclude_self` takes a query that is a document of the corpus out of its own results:
    `true` by its id, `auto` where the text is the same too. `cluster_field` names the field of queries whose value the
    variants of a query share: tests and intervals resample such clusters, and a query without the field is a cluster of
    its own. Where `golden` is true, the documents' metadata are for reading, and evaluations leave a golden report.
    """

    golden: ClassVar[bool] = False

    name: str | None = None
    split: str = "test"
    max_queries: int | None = Field(default=None, ge=1)
    max_documents: int | None = Field(default=None, ge=1)
    unknown_judged: Literal["error", "keep", "drop"] = "error"
    exclude_self: ExcludeSelf = "auto"
    cluster_field: str | None = Field(default=None, min_length=1)
    seed: int = Field(default=0, ge=0)
    chunking: InstanceOf[Chunking] = Whole()

    @field_validator("exclude_self", mode="before")
    @classmethod
    def _word_of_boolean(cls, value: object) -> object:
        """Return a boolean as a word: YAML reads an unquoted true as one."""
        return str(value).lower() if isinstance(value, bool) else value

    @abstractmethod
    def read(self) -> Raw:
        """Read the files."""

    def splits(self) -> Sequence[str]:
        """Return the splits that there are to choose from; none where `split` is but a name.

        They are those of which all is there that paths with `{split}` in them name, and which no other setting does.
        """
        if not self._of_splits:
            return ()
        others = {Path(path) for path in self._texts.values()}
        found = (
            {name for name in splits_of(path) if Path(path.replace(SPLIT, name)) not in others}
            for path in self._of_splits.values()
        )
        return sorted(set.intersection(*found))

    @property
    def origin(self) -> str:
        """Return the file or folder that a dataset without a name is called after."""
        return type(self).__name__.lower()

    def load(self) -> Dataset:
        """Read the files, check them, and return a dataset; raises `DatasetError`."""
        source = self._of_its_split()
        try:
            return assemble(source, source.read()).chunked(self.chunking)
        except RepeatedIdError as error:
            raise DatasetError(_repeated(source, "document", error.identifier)) from None
        except RetrieverError as error:
            raise DatasetError(f"{source.origin}: {error}") from None

    def places(self, table: Literal["document", "query"], identifier: str) -> Sequence[str]:
        """Return where an id stands, as FILE:LINE; nothing for a format that does not know."""
        return ()

    @property
    def _texts(self) -> dict[str, str]:
        """Return the settings of the format that are text, by name."""
        common = {each.name for each in fields(DatasetSource)}
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in common}
        return {name: value for name, value in own.items() if isinstance(value, str)}

    @property
    def _of_splits(self) -> dict[str, str]:
        """Return those of them that are different ones for each split."""
        return {name: path for name, path in self._texts.items() if SPLIT in path}

    def _of_its_split(self) -> Self:
        """Return the same settings with paths to the files of the split; raises `DatasetError` where there are none."""
        if self._of_splits and self.split not in (there := self.splits()):
            path, has = next(iter(self._of_splits.values())), ", ".join(there) or "none"
            raise DatasetError(f"dataset.split: there is no split {self.split!r} for {path}; there are {has}")
        paths: dict[str, Any] = {name: path.replace(SPLIT, self.split) for name, path in self._of_splits.items()}
        return replace(self, **paths) if paths else self


Table = TypeVar("Table", Corpus, Queries)


def corpus_of(documents: Iterable[tuple[str, str, str]]) -> Corpus:
    """Make a corpus of (id, title, text) rows."""
    ids: list[str] = []
    titles: list[str] = []
    texts: list[str] = []
    for identifier, title, text in documents:
        ids.append(identifier)
        titles.append(title)
        texts.append(text)
    return Corpus(ids, texts, titles if any(titles) else ())


def assemble(source: DatasetSource, raw: Raw) -> Dataset:
    """Check what a format's files say, limit it, and make it a dataset.

    Unjudged queries are dropped and negative grades count as 0, as in trec_eval. Raises `DatasetError`.
    """
    name = source.name or _called_after(Path(source.origin))
    if not len(raw.corpus):
        raise DatasetError(f"{name}: there are no documents")
    raw = replace(raw, judged=tuple(raw.judged))
    tables = {"": list(raw.qrels)} | {kind: _replaced(raw.qrels, own) for kind, own in raw.qrels_by_search_type.items()}
    query_at = _query_positions(source, raw, tables.values())
    document_at = {identifier: position for position, identifier in enumerate(raw.corpus.ids)}
    unknown = _unknown_documents(source, raw, document_at, tables.values())
    document_at |= {identifier: len(raw.corpus) + i for i, identifier in enumerate(unknown)}
    judged = {kind: _judgments(raw, qrels, query_at, document_at) for kind, qrels in tables.items()}

    queries = _kept_queries(source, raw, query_at, judged.values())
    if not len(raw.queries):
        raise DatasetError(f"{name}: there are no queries")
    if not queries.any():
        raise DatasetError(f"{name}: none of the {len(raw.queries)} queries is judged in {raw.qrels_name}")
    documents = _kept_documents(source, len(raw.corpus), len(unknown), queries, judged.values())
    kept = {kind: _selected(judgments, queries, documents) for kind, judgments in judged.items()}
    dataset = Dataset(
        name=name,
        split=source.split,
        corpus=_rows(raw.corpus, documents[: len(raw.corpus)]),
        queries=_rows(_clustered(source, raw.queries), queries),
        judgments=kept.pop(""),
        judgments_by_search_type=kept,
        unknown_documents=tuple(compress(unknown, documents[len(raw.corpus) :])),
        exclude_self=source.exclude_self,
    )
    if source.exclude_self == "true" and not (dataset.own_documents >= 0).any():
        raise DatasetError(f"{name}: no query has the id of a document, so dataset.exclude_self=true excludes nothing")
    if source.max_documents is not None and len(dataset.corpus) > source.max_documents:
        logger.warning(
            "dataset.max_documents=%s: %s documents are kept, as all judged documents are; max_queries keeps fewer",
            f"{source.max_documents:,}", f"{len(dataset.corpus):,}",
        )  # fmt: skip
    return dataset


def _clustered(source: DatasetSource, queries: Queries) -> Queries:
    """Return queries with the labels of their clusters, where a setting names the field; raises `DatasetError`."""
    if source.cluster_field is None:
        return queries
    try:
        return replace(queries, clusters=cluster_labels(queries.ids, queries.metadata, source.cluster_field))
    except ValueError as error:
        raise DatasetError(str(error)) from None


def _repeated(source: DatasetSource, table: Literal["document", "query"], identifier: str) -> str:
    """Return an error about an id that stands twice, with the places where the format knows them."""
    first, *others = source.places(table, identifier) or [""]
    if others:
        return f"{others[0]}: the {table} id {identifier!r} is already used at {first}: ids must be unique"
    return f"{source.origin}: the {table} id {identifier!r} occurs more than once: ids must be unique"


def _called_after(path: Path) -> str:
    name = path.expanduser().resolve().name
    return name if path.expanduser().is_dir() else name.removesuffix(".gz").rpartition(".")[0] or name


def _replaced(qrels: Sequence[Qrel], own: Sequence[Qrel]) -> list[Qrel]:
    named = {query for query, _, _ in own}
    return [*own, *(qrel for qrel in qrels if qrel[0] not in named)]


def _query_positions(source: DatasetSource, raw: Raw, tables: Iterable[Sequence[Qrel]]) -> dict[str, int]:
    query_at: dict[str, int] = {}
    for position, identifier in enumerate(raw.queries.ids):
        if query_at.setdefault(identifier, position) != position:
            raise DatasetError(_repeated(source, "query", identifier))
    named = dict.fromkeys(query for qrels in tables for query, _, _ in qrels) | dict.fromkeys(raw.judged)
    missing = [query for query in named if query not in query_at]
    if missing:
        raise DatasetError(
            f"{raw.qrels_name}: queries judged but not among the {len(query_at)} that there are: {len(missing)}, "
            f"first {missing[0]!r}; are these the judgments of these queries?"
        )
    return query_at


def _unknown_documents(
    source: DatasetSource, raw: Raw, document_at: Mapping[str, int], tables: Iterable[Sequence[Qrel]]
) -> list[str]:
    unknown = dict.fromkeys(doc for qrels in tables for _, doc, _ in qrels if doc not in document_at)
    if unknown and source.unknown_judged == "error":
        raise DatasetError(
            f"{raw.qrels_name}: documents judged but not among the {len(document_at)} of the corpus: {len(unknown)}, "
            f"first {next(iter(unknown))!r}; to go on, dataset.unknown_judged=keep (only a service finds them) or drop"
        )
    return sorted(unknown)


def _judgments(raw: Raw, qrels: list[Qrel], query_at: Mapping[str, int], document_at: Mapping[str, int]) -> Judgments:
    queries = np.fromiter((query_at[query] for query, _, _ in qrels), np.int32, len(qrels))
    documents = np.fromiter((document_at[document] for _, document, _ in qrels), np.int32, len(qrels))
    grades = np.fromiter((max(grade, 0) for _, _, grade in qrels), np.int32, len(qrels))
    order = np.lexsort((documents, queries))
    queries, documents, grades = queries[order], documents[order], grades[order]
    repeats = (queries[1:] == queries[:-1]) & (documents[1:] == documents[:-1])
    conflicts = np.flatnonzero(repeats & (grades[1:] != grades[:-1]))
    if len(conflicts):
        first = conflicts[0]
        query, document, _ = qrels[order[first]]
        raise DatasetError(
            f"{raw.qrels_name}: query {query!r} and document {document!r} have two grades, "
            f"{grades[first]} and {grades[first + 1]}: a pair has one"
        )
    new = np.concatenate((np.ones(min(len(qrels), 1), dtype=np.bool_), ~repeats))
    return Judgments(queries[new], documents[new], grades[new])


def _kept_queries(
    source: DatasetSource, raw: Raw, query_at: Mapping[str, int], tables: Iterable[Judgments]
) -> NDArray[np.bool_]:
    kept = np.zeros(len(raw.queries), dtype=np.bool_)
    kept[[query_at[query] for query in raw.judged]] = True
    for judgments in tables:
        kept[judgments.queries] = True
    if source.unknown_judged == "drop":  # a query that lost all its gold documents must not pass for a true negative
        for judgments in tables:
            known = judgments.documents < len(raw.corpus)
            golds = np.bincount(judgments.queries[known & (judgments.grades > 0)], minlength=len(kept))
            kept &= (golds > 0) | (judgments.golds(len(kept)) == 0)
    return _sampled(kept, source.max_queries, source.seed)


def _kept_documents(
    source: DatasetSource, known: int, unknown: int, queries: NDArray[np.bool_], tables: Iterable[Judgments]
) -> NDArray[np.bool_]:
    used = np.zeros(known + unknown, dtype=np.bool_)
    for judgments in tables:
        used[judgments.documents[queries[judgments.queries]]] = True
    kept, others = used.copy(), ~used[:known]
    if source.max_documents is not None:
        others = _sampled(others, max(source.max_documents - int(used[:known].sum()), 0), source.seed)
    kept[:known] |= others
    if source.unknown_judged == "drop":
        kept[known:] = False
    return kept


def _sampled(mask: NDArray[np.bool_], most: int | None, seed: int) -> NDArray[np.bool_]:
    candidates = np.flatnonzero(mask)
    if most is None or len(candidates) <= most:
        return mask
    sample = np.zeros_like(mask)
    sample[np.random.default_rng(seed).choice(candidates, most, replace=False)] = True
    return sample


def _selected(judgments: Judgments, queries: NDArray[np.bool_], documents: NDArray[np.bool_]) -> Judgments:
    rows = queries[judgments.queries] & documents[judgments.documents]
    return Judgments(
        (np.cumsum(queries, dtype=np.int32) - 1)[judgments.queries[rows]],
        (np.cumsum(documents, dtype=np.int32) - 1)[judgments.documents[rows]],
        judgments.grades[rows],
    )


def _rows(table: Table, kept: NDArray[np.bool_]) -> Table:
    if kept.all():
        return table
    columns = {column.name: getattr(table, column.name) for column in fields(table)}
    return replace(table, **{name: tuple(compress(column, kept)) for name, column in columns.items()})
