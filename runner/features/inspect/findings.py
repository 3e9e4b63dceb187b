"""Derive findings from what was counted in a dataset: each rule describes a problem and says what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass as settings

from retrievers.lexical.analyzer import Analyzer
from runner.config.addresses import LocalPath
from runner.datasets.base import EXPECTED_ANSWER, Queries
from runner.datasets.dataset import Dataset
from runner.datasets.duplicates import Shingled, groups
from runner.datasets.filtering import find_gold_outside
from runner.evaluation.language import detect_language
from runner.evaluation.termless_queries import find_termless_queries
from runner.features.inspect.finding import DOUBTFUL, OF_NOTE, WRONG, Finding, order_findings
from runner.features.inspect.own_documents import OwnQueries
from runner.features.inspect.queries import is_generated, unlike_searches
from runner.features.inspect.rankings import Findability, list_golds
from runner.features.inspect.texts import LEAST_WORDS, find_copied_queries, is_contained, plain
from runner.features.inspect.variants import Variants, find_variants
from runner.metrics.measures import parse_primary

FEW_QUERIES = 50
"""With fewer queries, only large differences can be told from chance (Buckley and Voorhees, 2000)."""

EVERY_TENTH, HALF = 0.1, 0.5

MOST_GOLD, BEGINNING = 3, 300
"""How many gold documents of a query, and how many characters of a document, are shown."""


def _parse_measure(name: str) -> str:
    """Return the name of a measure by which systems can be ranked; raises `ValueError`."""
    return str(parse_primary(name))


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class InspectionSettings:
    """How a dataset is inspected.

    Retrievers are asked for `depth` documents; `cutoff` is used for coverage and for what is found. Texts are
    near-duplicates from a similarity of `near_duplicate`, and documents are like gold from an LSA cosine of
    `like_gold`. Documents with more words than `long_document` are long, because many encoders read no further. A
    query's gold is compared with `random_documents`. Each finding shows `examples`.

    `measure` is the measure by which the reliability of the dataset is assessed. `benchmarks` are files of hashes to
    compare the dataset with.
    """

    depth: int = Field(default=100, ge=1)
    cutoff: int = Field(default=10, ge=1)
    near_duplicate: float = Field(default=0.8, gt=0, le=1)
    like_gold: float = Field(default=0.75, ge=-1, le=1)
    long_document: int = Field(default=256, ge=1)
    random_documents: int = Field(default=10, ge=1)
    examples: int = Field(default=20, ge=0)
    measure: Annotated[str, AfterValidator(_parse_measure)] = "nDCG@10"
    benchmarks: Sequence[LocalPath] = Field(default_factory=list, repr=False)
    seed: int = Field(default=0, ge=0)


def findings(
    dataset: Dataset,
    texts: Sequence[str],
    shingled: Shingled,
    others: Mapping[str, Queries],
    words: Mapping[str, NDArray[np.int64]],
    overlap: NDArray[np.float64],
    findability: Findability,
    settings: InspectionSettings,
    analyzer: Analyzer,
) -> list[Finding]:
    """Return the findings, most serious first; of equally serious ones, the one with the larger share first.

    `texts` are the texts of the documents with their titles, and `shingled` are the same texts in shingles.
    """
    every = [
        *_of_judgments(dataset, settings),
        *_of_queries(dataset, others, words["queries"], settings),
        *_of_documents(dataset, texts, shingled, words, settings),
        *_of_overlap(dataset, texts, overlap, settings),
        *_of_generated_queries(dataset, texts, overlap, settings),
        *_of_rankings(dataset, texts, findability, settings),
        *language_findings(texts, analyzer),
        *_of_terms(dataset, analyzer, settings),
    ]
    return order_findings(every)


def language_findings(texts: Sequence[str], analyzer: Analyzer) -> Iterator[Finding]:
    """Yield a finding if the documents are in a language that the analyzer does not stem."""
    language = detect_language(texts)
    if language is None or analyzer.identifiers:  # identifiers are split alike in every language
        return
    fitting = None if language.analyzer == "plain" else language.analyzer
    if analyzer.stemmer == fitting:
        return
    name = f"the language {language.code!r}"
    stemmed = f"stems {analyzer.stemmer}" if analyzer.stemmer else "does not stem"
    yield Finding(
        name="analyzer for another language",
        gravity=DOUBTFUL,
        count=round(language.share * language.texts),
        of=language.texts,
        text=f"Of {language.texts:,} sampled documents, {language.share:.0%} are in {name}, but the analyzer "
        f"{stemmed}.",
        remedy=f"Evaluate with analyzer={language.analyzer}.",
    )


def _of_terms(dataset: Dataset, analyzer: Analyzer, settings: InspectionSettings) -> Iterator[Finding]:
    queries = dataset.queries
    for kind in find_termless_queries(queries, analyzer):
        yield Finding(
            name="queries without terms", gravity=DOUBTFUL, count=len(kind.queries), of=len(queries),
            text=f"{len(kind.queries):,} of {len(queries):,} queries {kind.reason}.",
            remedy=f"{kind.remedy[0].upper()}{kind.remedy[1:]}.",
            examples=[{"query": queries.ids[i], "text": queries.texts[i]} for i in kind.queries[: settings.examples]],
        )  # fmt: skip


def answers(queries: Queries) -> list[str]:
    """Return the expected answers of queries as text; "" for none."""
    return [str(known.get(EXPECTED_ANSWER) or "") for known in queries.metadata] or [""] * len(queries)


def _of_judgments(dataset: Dataset, settings: InspectionSettings) -> Iterator[Finding]:
    known, gold = len(dataset.documents), np.unique(dataset.judgments.documents[dataset.judgments.grades > 0])
    absent = [dataset.judgments.unknown_documents[document - known] for document in gold[gold >= known]]
    if absent:
        yield Finding(
            name="missing gold documents", gravity=WRONG, count=len(absent), of=len(gold),
            text=f"{len(absent):,} of {len(gold):,} gold documents are missing from the corpus, so no retriever can "
            "find them.",
            remedy="Add them, or drop their judgments: dataset.unknown_judged=drop.",
            examples=[{"document": i} for i in absent[: settings.examples]],
        )  # fmt: skip
    outside = find_gold_outside(dataset.documents, dataset.queries, dataset.judgments)
    if outside:
        golds = int(np.count_nonzero(dataset.judgments.grades > 0))
        yield Finding(
            name="gold outside the filter",
            gravity=WRONG,
            count=len(outside),
            of=golds,
            text=f"{len(outside):,} of {golds:,} gold judgments are of documents that fail the filter of their query, "
            "so no retriever can return these.",
            remedy="Correct the filter of the query, the metadata of the document, or the judgment.",
            examples=[{"query": query, "document": document} for query, document in outside[: settings.examples]],
        )
    n = len(dataset.queries)
    answerable = int(np.count_nonzero(dataset.judgments.golds(n)))
    if not answerable:
        yield Finding(
            name="no gold",
            gravity=WRONG,
            count=n,
            of=n,
            text="No query has a relevant document, so only empty results can be measured.",
            remedy="Add queries that a document answers, or check how the judgments were read.",
        )
    elif answerable < FEW_QUERIES:
        queries = f"{answerable:,} queries have" if answerable > 1 else "one query has"
        yield Finding(
            name="few queries", gravity=DOUBTFUL, count=answerable, of=answerable,
            text=f"Only {queries} gold, so small differences between retrievers cannot be distinguished from chance.",
            remedy=f"Add queries (at least {FEW_QUERIES}), or compare intervals instead of means.",
        )  # fmt: skip


def _of_queries(
    dataset: Dataset, others: Mapping[str, Queries], words: NDArray[np.int64], settings: InspectionSettings
) -> Iterator[Finding]:
    q, n = dataset.queries, len(dataset.queries)
    query_texts = set(map(plain, q.texts))
    same = [i for i, answer in enumerate(answers(q)) if plain(answer) and plain(answer) in query_texts]
    answered = sum(bool(answer) for answer in answers(q))
    if same:
        yield Finding(
            name="expected answers that are queries", gravity=WRONG, count=len(same), of=answered,
            text=f"The expected answer of {len(same):,} of {answered:,} queries is itself a query.",
            remedy="Write real answers, or leave the field empty; grades based on these answers are misleading.",
            examples=[_cite(q, i) for i in same[: settings.examples]],
        )  # fmt: skip
    own = OwnQueries.of(dataset, words)
    yield from own.iter_findings(settings.examples)
    for split, other in others.items():
        copies = find_copied_queries(q.texts, other.texts, settings.near_duplicate)
        copies = [(i, j) for i, j in copies if not own.are_documents[i]]  # splits of one collection share its documents
        if copies:
            yield Finding(
                name=f"leakage from {split}", gravity=WRONG, count=len(copies), of=n,
                text=f"{len(copies):,} of {n:,} queries are copies or near-duplicates of queries in the split {split}.",
                remedy=f"Remove them from one of the splits; otherwise, whatever is tuned on {split} has already seen "
                "their answers.",
                examples=[
                    {**_cite(q, i), "of": other.ids[j], "its text": other.texts[j]}
                    for i, j in copies[: settings.examples]
                ],
            )  # fmt: skip
    blank = np.flatnonzero(words == 0).tolist()
    if blank:
        yield Finding(
            name="empty queries", gravity=WRONG, count=len(blank), of=n,
            text=f"{len(blank):,} of {n:,} queries have no words, so nothing can be found for them.",
            remedy="Remove them.", examples=[_cite(q, i) for i in blank[: settings.examples]],
        )  # fmt: skip
    alike = [group for group in groups(q.texts, settings.near_duplicate) if words[group[0]]]
    again = sum(len(group) - 1 for group in alike)
    if again:
        differing = sum(len({tuple(list_golds(dataset, i)) for i in group}) > 1 for group in alike)
        clash = f" {differing:,} of the {len(alike):,} groups have different gold." if differing else ""
        yield Finding(
            name="near-duplicate queries",
            gravity=DOUBTFUL if differing or again > EVERY_TENTH * n else OF_NOTE,
            count=again,
            of=n,
            text=f"{again:,} of {n:,} queries are near-duplicates of another query, which therefore counts twice in "
            f"every mean.{clash}",
            remedy=f"Keep one of each group{', or give the whole group the same gold' if differing else ''}.",
            examples=[{"queries": [_cite(q, i) for i in group]} for group in alike[: settings.examples]],
        )
    if not q.clusters:
        yield from _of_variants(dataset, find_variants(dataset, alike), settings)


def _of_variants(dataset: Dataset, variants: Variants, settings: InspectionSettings) -> Iterator[Finding]:
    """Yield a finding if queries look like variants of each other."""
    n = len(dataset.queries)
    if not variants.queries:
        return
    shared = f"a value of the field {variants.field!r}" if variants.field else "most of their words"
    give = "Give variants the same value in a field of their metadata, and set dataset.cluster_field=FIELD."
    yield Finding(
        name="query variants",
        gravity=DOUBTFUL,
        count=variants.queries,
        of=n,
        text=f"{variants.queries:,} of {n:,} queries look like variants of each other, because they share {shared} and "
        "their gold. Tests and intervals that treat them as independent are overconfident.",
        remedy=f"Test by cluster: dataset.cluster_field={variants.field}." if variants.field else give,
        examples=[
            {"queries": [_cite(dataset.queries, i) for i in group]} for group in variants.groups[: settings.examples]
        ],
    )


def _of_documents(
    dataset: Dataset,
    texts: Sequence[str],
    shingled: Shingled,
    words: Mapping[str, NDArray[np.int64]],
    settings: InspectionSettings,
) -> Iterator[Finding]:
    documents, n = dataset.documents, len(texts)
    blank = np.flatnonzero(words["documents"] == 0).tolist()
    if blank:
        yield Finding(
            name="empty documents",
            gravity=DOUBTFUL,
            count=len(blank),
            of=n,
            text=f"{len(blank):,} of {n:,} documents have no words.",
            remedy="Remove them, or check how they were read.",
            examples=[{"document": documents.ids[i]} for i in blank[: settings.examples]],
        )
    alike = [group for group in shingled.groups(settings.near_duplicate) if words["documents"][group[0]]]
    again = sum(len(group) - 1 for group in alike)
    if again:
        yield Finding(
            name="near-duplicate documents",
            gravity=DOUBTFUL if again > EVERY_TENTH * n else OF_NOTE,
            count=again,
            of=n,
            text=f"{again:,} of {n:,} documents are near-duplicates of another document; a retriever that finds the "
            "duplicate of a gold document gets no credit.",
            remedy="Keep one of each group, or judge the whole group alike.",
            examples=[
                {"documents": [documents.ids[i] for i in group], "text": _quote(dataset, texts, group[0])["text"]}
                for group in alike[: settings.examples]
            ],
        )
    searched = words.get("chunks", words["documents"])
    long = int(np.count_nonzero(searched > settings.long_document))
    if long:
        what = "documents" if dataset.whole is None else "chunks"
        yield Finding(
            name=f"long {what}", gravity=OF_NOTE, count=long, of=len(searched),
            text=f"{long:,} of {len(searched):,} {what} have more than {settings.long_document} words; many encoders "
            "ignore the rest.",
            remedy="Split them: chunking=headings, or chunking=tokens with another chunking.size.",
        )  # fmt: skip


def _of_overlap(
    dataset: Dataset, texts: Sequence[str], overlap: NDArray[np.float64], settings: InspectionSettings
) -> Iterator[Finding]:
    q, known = dataset.queries, overlap[~np.isnan(overlap)]
    whole = [
        query
        for query in np.flatnonzero(np.nan_to_num(overlap) > 1 - 1e-9).tolist()
        if is_contained(q.texts[query], (texts[gold] for gold in list_golds(dataset, query)))
    ]
    if whole:
        yield Finding(
            name="queries copied from gold", gravity=DOUBTFUL if len(whole) > EVERY_TENTH * len(known) else OF_NOTE,
            count=len(whole), of=len(known),
            text=f"{len(whole):,} of {len(known):,} queries have {LEAST_WORDS} or more words and occur verbatim in "
            "their gold.",
            remedy="Write queries in other words, as people would; copied queries favour retrievers that match words.",
            examples=[_cite(q, query) for query in whole[: settings.examples]],
        )  # fmt: skip


def _of_generated_queries(
    dataset: Dataset, texts: Sequence[str], overlap: NDArray[np.float64], settings: InspectionSettings
) -> Iterator[Finding]:
    """Yield an assessment of queries that `synthesize` wrote."""
    q, n = dataset.queries, len(dataset.queries)
    if not n or not is_generated(q):
        return
    known = len(texts)
    golds = [[texts[gold] for gold in list_golds(dataset, i) if gold < known] for i in range(n)]
    signs = unlike_searches(q, golds)
    counts = Counter(signs.values())
    listed = f" The others: {', '.join(f'{sign} {count:,}' for sign, count in counts.most_common())}." if signs else ""
    shared = overlap[~np.isnan(overlap)]
    in_gold = f" On average, {shared.mean():.0%} of a query's terms are in its gold." if len(shared) else ""
    yield Finding(
        name="generated queries", gravity=DOUBTFUL if len(signs) > EVERY_TENTH * n else OF_NOTE, count=len(signs), of=n,
        text=f"{n - len(signs):,} of {n:,} generated queries look like searches.{listed}{in_gold}",
        remedy="Read some of each type; exclude types with generator.types, or let a language model write the queries: "
        "generator=llm.",
        examples=[{**_cite(q, i), "sign": sign} for i, sign in list(signs.items())[: settings.examples]],
    )  # fmt: skip


def _of_rankings(
    dataset: Dataset, texts: Sequence[str], findability: Findability, settings: InspectionSettings
) -> Iterator[Finding]:
    q, n, retrievers = dataset.queries, int(np.count_nonzero(findability.answerable)), len(findability.names)
    if not retrievers or not n:
        return
    missed, easy = np.flatnonzero(findability.missed).tolist(), int(np.count_nonzero(findability.easy))
    if findability.suspicious:
        queries = len({suspicion.query for suspicion in findability.suspicious})
        yield Finding(
            name="suspicious gold", gravity=WRONG if queries > EVERY_TENTH * n else DOUBTFUL, count=queries, of=n,
            text=f"For {queries:,} of {n:,} queries, most retrievers rank a document that resembles or nearly "
            "duplicates gold, but is not gold itself, above all gold.",
            remedy="Judge these documents; if one is relevant, every retriever is scored too low.",
            examples=[
                {
                    **_cite(q, suspicion.query),
                    "document": _quote(dataset, texts, suspicion.document),
                    "like gold": _quote(dataset, texts, suspicion.gold),
                    "evidence": suspicion.evidence,
                }
                for suspicion in findability.suspicious[: settings.examples]
            ],
        )  # fmt: skip
    if missed:
        yield Finding(
            name="queries that no retriever answers",
            gravity=DOUBTFUL if len(missed) > EVERY_TENTH * n else OF_NOTE,
            count=len(missed),
            of=n,
            text=f"None of the {retrievers} retrievers finds gold for {len(missed):,} of {n:,} queries in its first "
            f"{findability.depth} results.",
            remedy="Read the queries and their gold; either the gold is wrong, or these are the queries to improve.",
            examples=[
                {**_cite(q, i), "gold": [_quote(dataset, texts, gold) for gold in list_golds(dataset, i)[:MOST_GOLD]]}
                for i in missed[: settings.examples]
            ],
        )
    if easy:
        yield Finding(
            name="queries that every retriever answers",
            gravity=DOUBTFUL if easy > HALF * n else OF_NOTE,
            count=easy,
            of=n,
            text=f"All {retrievers} retrievers rank gold first and have the same {settings.measure} for {easy:,} of "
            f"{n:,} queries, so these queries do not distinguish them by this measure.",
            remedy="Add harder queries, or compare on the others alone."
            if easy > HALF * n
            else "No action is needed as long as they are few.",
            examples=[_cite(q, i) for i in np.flatnonzero(findability.easy)[: settings.examples].tolist()],
        )
    known = [(share, name) for share, name in zip(findability.judged, findability.names, strict=True) if share == share]
    judged, lowest = min(known, default=(1.0, ""))
    if judged < HALF:
        unjudged = round((1 - judged) * 100)
        yield Finding(
            name="unjudged documents", gravity=OF_NOTE, count=unjudged, of=100,
            text=f"{unjudged}% of the first {findability.cutoff} documents of {lowest} are unjudged and count as "
            "irrelevant.",
            remedy="Use measures that need few judgments (RR, recall), or judge the documents: python -m runner judge "
            "run=latest by=hand.",
        )  # fmt: skip


def _cite(queries: Queries, query: int) -> dict[str, str]:
    return {"query": queries.ids[query], "text": queries.texts[query]}


def _quote(dataset: Dataset, texts: Sequence[str], document: int) -> dict[str, str]:
    """Return a document with the beginning of its text."""
    return {
        "document": dataset.documents.ids[document],
        "text": " ".join(texts[document][: 2 * BEGINNING].split())[:BEGINNING],
    }
