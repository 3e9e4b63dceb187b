"""Every flaw that is put into a dataset is found, and none where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from retrievers.base import Corpus, Rankings, build_rankings
from retrievers.filters import parse_filter
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25
from retrievers.lexical.sqlite_fts import SqliteFts
from retrievers.search import search_cached
from retrievers.store import MemoryStore
from runner.datasets.base import EXPECTED_ANSWER, Judgments, Queries, Raw
from runner.datasets.chunking import Chunking, Tokens, Whole
from runner.datasets.dataset import Dataset
from runner.datasets.duplicates import word_counts
from runner.datasets.own_documents import ExcludeSelf, OwnIdRule
from runner.datasets.source import DatasetSource
from runner.features.inspect.finding import GRAVITIES, Finding
from runner.features.inspect.findings import InspectionSettings, language_findings
from runner.features.inspect.inspection import Inspection, inspect
from runner.features.inspect.texts import find_copied_queries, is_contained, plain
from runner.metrics.measures import parse
from runner.metrics.scores import Grader
from tests.strategies.settings import at_most

THINGS = ("lighthouse", "ferry", "museum", "market", "bakery", "harbour", "library", "cinema", "garden", "station")
DOINGS = ("shines", "sails", "shows", "sells", "bakes", "shelters", "lends", "plays", "grows", "waits")
N = 60


class World(DatasetSource):
    """A source of what a test made."""

    raw: Raw

    def read(self) -> Raw:
        return self.raw


def document(i: int) -> str:
    """Return a text that no other is like: its words, but for a few, are its own."""
    own = " ".join(f"word{i}x{j}" for j in range(12))
    return f"The {THINGS[i % 10]} of street {i} {DOINGS[i // 10 % 10]} every day, {own}."


def dataset(
    texts: Mapping[str, str] | None = None, asked: Mapping[str, str] | None = None,
    qrels: Sequence[tuple[str, str, int]] | None = None, answers: Mapping[str, str] | None = None,
    unknown: str = "error",
) -> Dataset:  # fmt: skip
    """Return a dataset without flaws, and whatever is given on top: documents, queries, judgments, answers."""
    documents = {f"d{i}": document(i) for i in range(2 * N)} | dict(texts or {})
    queries = {f"q{i}": f"word{i}x1 word{i}x5 please, number {i}" for i in range(N)} | dict(asked or {})
    golds = [(f"q{i}", f"d{i}", 1) for i in range(N)] + list(qrels or ())
    known = [{EXPECTED_ANSWER: (answers or {}).get(i, f"street {i}")} for i in queries]
    raw = Raw(
        Corpus(list(documents), list(documents.values())),
        Queries(list(queries), list(queries.values()), [""] * len(queries), known),
        golds,
    )
    source = World(name="world", unknown_judged=unknown)  # type: ignore[arg-type]  # one of its values
    object.__setattr__(source, "raw", raw)
    return source.assemble(raw)


def inspected(
    of: Dataset, rankings: Mapping[str, Rankings] | None = None, others: Mapping[str, Queries] | None = None,
    **options: object,
) -> Inspection:  # fmt: skip
    store, settings = MemoryStore(), InspectionSettings(**options)  # type: ignore[arg-type]  # its own settings
    if rankings is None:
        found = (BM25(), SqliteFts())
        rankings = {type(r).__name__: search_cached(r, of.corpus, of.queries.texts, 20, store) for r in found}
    return inspect(of, rankings, Analyzer(), store, others or {}, settings)


def named(inspection: Inspection) -> dict[str, Finding]:
    return {finding.name: finding for finding in inspection.findings}


def test_a_dataset_without_flaws_is_but_easy_and_sparsely_judged() -> None:
    found = inspected(dataset())
    assert named(found).keys() <= {"queries that every retriever answers", "unjudged documents"}
    assert found.counts["documents"] == 2 * N
    assert found.counts["queries with gold"] == found.grades[1] == N
    assert (found.golds == 1).all()
    assert np.nanmin(found.gold_overlap) > np.nanmax(found.chance_overlap)


def test_what_a_dataset_lacks_is_said() -> None:
    lacking = " ".join(inspected(dataset()).lacking)
    for what in ("query types", "judged irrelevant", "one grade", "queries without gold", "other splits"):
        assert what in lacking
    assert "expected answers" not in lacking


def test_generated_queries_are_assessed() -> None:
    asked = {"long": " ".join(f"word{at}" for at in range(25))}
    of = dataset(asked=asked, qrels=[("long", "d1", 1)])
    assert "generated queries" not in named(inspected(of))
    known = [{"query_type": "keyword", "evaluation": "nonllm"}] * len(of.queries)
    finding = named(inspected(replace(of, queries=replace(of.queries, metadata=known))))["generated queries"]
    assert (finding.gravity, finding.count, finding.of) == ("info", 1, len(of.queries))
    assert [example["sign"] for example in finding.examples] == ["long"]
    assert f"{N:,} of {N + 1:,} generated queries look like searches" in finding.text


def test_gold_that_is_not_in_the_corpus_is_wrong() -> None:
    qrels = [("q1", "gone", 1), ("q1", "never", 0)]  # what is judged irrelevant is not missed
    finding = named(inspected(dataset(qrels=qrels, unknown="keep")))["missing gold documents"]
    assert (finding.gravity, finding.count, finding.examples) == ("error", 1, [{"document": "gone"}])


def test_gold_that_fails_the_filter_of_its_query_is_wrong() -> None:
    of = dataset()
    corpus = replace(of.corpus, metadata=[{"odd": i % 2} for i in range(len(of.corpus))], filter_fields=("odd",))
    filters = [parse_filter({"odd": 1 if i < 10 else i % 2}) for i in range(len(of.queries))]
    finding = named(inspected(replace(of, corpus=corpus, queries=replace(of.queries, filters=filters)), examples=2))
    own = finding["gold outside the filter"]
    assert (own.gravity, own.count, own.of) == ("error", 5, N)
    assert own.examples == [{"query": "q0", "document": "d0"}, {"query": "q2", "document": "d2"}]


def test_answers_that_are_questions_are_counted_among_the_answers() -> None:
    one = dataset(
        answers={"q3": "Word3x1 WORD3x5, please number 3?", "q4": "word5x1 word5x5 please number 5", "q6": ""}
    )
    finding = named(inspected(one))["expected answers that are queries"]
    assert (finding.count, finding.of) == (2, N - 1)
    assert [example["query"] for example in finding.examples] == ["q3", "q4"]


def test_queries_of_another_split_are_leakage_even_if_changed_a_little() -> None:
    text = "how does the old lighthouse on the northern pier keep its lamp burning in a winter storm at sea"
    one = dataset(asked={"x": text}, qrels=[("x", "d0", 1)])
    train = Queries(["t1", "t2"], ["something else altogether, that nobody asks", f"{text} then"], ["", ""])
    finding = named(inspected(one, others={"train": train}))["leakage from train"]
    assert finding.count == 1
    assert (finding.examples[0]["query"], finding.examples[0]["of"]) == ("x", "t2")
    assert "no other splits" not in " ".join(inspected(one, others={"train": train}).lacking)


def test_near_duplicates_count_once_and_are_doubtful_with_other_gold() -> None:
    twin = {"copy": document(3), "again": f"{document(3)}", "void": "...", "blank": ""}
    one = dataset(
        texts=twin, asked={"x": "word3x1 word3x5 please, number 3", "y": "--"}, qrels=[("x", "d7", 1), ("y", "d8", 1)]
    )
    found = named(inspected(one))
    assert found["near-duplicate documents"].count == 2
    (group,) = found["near-duplicate documents"].examples
    assert group == {"documents": ["d3", "copy", "again"], "text": document(3)}
    assert found["empty documents"].count == 2
    assert found["empty queries"].count == 1
    queries = found["near-duplicate queries"]
    assert (queries.gravity, queries.count) == ("warning", 1)
    assert "1 of the 1 groups have different gold" in queries.text


def test_queries_copied_word_for_word_from_their_gold_are_reported() -> None:
    words = document(50).upper().split()
    asked = {"x": " ".join(words[2:8]), "y": " ".join(reversed(words[2:8])), "z": " ".join(words[-3:])}
    one = dataset(asked=asked, qrels=[(query, "d50", 1) for query in asked])
    finding = named(inspected(one))["queries copied from gold"]
    assert [example["query"] for example in finding.examples] == ["x"]


def test_blank_queries_and_documents_are_no_duplicates_of_each_other() -> None:
    one = dataset(
        texts={"void": "...", "blank": "", "low": "_"}, asked={"x": "?", "y": "--"},
        qrels=[("x", "void", 1), ("y", "d8", 1)],
    )  # fmt: skip
    found = named(inspected(one))
    assert (found["empty queries"].count, found["empty documents"].count) == (2, 3)
    assert not found.keys() & {"near-duplicate queries", "near-duplicate documents"}
    first = placed(*[[]] * N, [2 * N + 1, 2 * N], [])  # of x: a blank document above the gold, blank as well
    assert not inspected(one, {"a": first, "b": first}).findability.suspicious


def test_a_dataset_without_gold_is_wrong_and_claims_no_success() -> None:
    one = replace(dataset(), judgments=Judgments(*np.array([[0], [1], [0]], np.int32)))
    found = inspected(one)
    assert named(found)["no gold"].gravity == "error"
    assert not {"few queries", "queries that no retriever answers", "unjudged documents"} & named(found).keys()
    assert np.isnan([*found.findability.success, *found.findability.judged]).all()
    assert "one grade" not in " ".join(found.lacking)


def test_what_is_expected_of_one_search_type_alone_is_said_to_be_left_out() -> None:
    one = dataset()
    other = replace(one, judgments=replace(one.judgments, by_search_type={"BM25": one.judgments}))
    assert "(BM25)" in " ".join(inspected(other).lacking)
    assert "search type" not in " ".join(inspected(one).lacking)


def test_few_queries_and_long_documents_are_reported() -> None:
    one = dataset(texts={"long": "a word " * 200})
    found = named(inspected(one, long_document=300))
    assert found["long documents"].count == 1
    few = replace(
        one, queries=Queries(["q"], ["word0x1"], [""]), judgments=Judgments(*np.array([[0], [0], [1]], np.int32))
    )
    assert named(inspected(few))["few queries"].count == 1


def placed(*rows: Sequence[int]) -> Rankings:
    """Return rankings of the first queries; the others find nothing."""
    hits = [[(document, float(-place)) for place, document in enumerate(row)] for row in rows]
    return build_rankings([*hits, *[[] for _ in range(N - len(rows))]], np.arange(2 * N + 9, dtype=np.int32), 4)


def worded(rng: np.random.Generator) -> str:
    """Return a text of words that many others have."""
    return " ".join(rng.choice([*THINGS, *DOINGS], 12))


def test_queries_that_the_inspected_measure_distinguishes_are_not_easy() -> None:
    """Both retrievers rank gold first; for the first query, one of them ranks the better gold lower."""
    of = dataset(qrels=[("q0", "d9", 2)])
    rankings = {"a": placed([9, 0], [1], [2, 5]), "b": placed([0, 9], [1], [2, 6])}
    graded = inspected(of, rankings, measure="nDCG@10")
    assert np.flatnonzero(graded.findability.easy).tolist() == [1, 2]
    finding = named(graded)["queries that every retriever answers"]
    assert f"rank gold first and have the same nDCG@10 for 2 of {N} queries" in finding.text
    assert np.flatnonzero(inspected(of, rankings, measure="RR").findability.easy).tolist() == [0, 1, 2]


def test_queries_that_all_retrievers_miss_or_answer_first_are_reported() -> None:
    one = dataset()
    found = inspected(one, {"a": placed([0, 9], [8, 1], [5, 6]), "b": placed([0], [1], [7])})
    assert found.findability.easy.tolist() == [i == 0 for i in range(N)]
    assert found.findability.missed.tolist() == [i > 1 for i in range(N)]
    assert found.findability.first_gold[:, :3].tolist() == [[1, 2, 0], [1, 1, 0]]
    assert named(found)["queries that no retriever answers"].count == N - 2
    example = named(found)["queries that no retriever answers"].examples[0]
    assert (example["query"], example["gold"][0]["document"]) == ("q2", "d2")
    assert found.findability.judged[0] == pytest.approx((0.5 + 0.5 + 0) / 3)  # the other queries have no hits
    assert found.findability.success[1] == pytest.approx(2 / N)


def test_a_twin_of_gold_that_most_retrievers_rank_above_it_is_suspicious() -> None:
    one = dataset(texts={"twin": document(4)})
    rows: list[list[int]] = [[] for _ in range(4)]
    above, below = placed(*rows, [2 * N, 4]), placed(*rows, [4, 2 * N])
    (suspicion,) = inspected(one, {"a": above, "b": above, "c": below}).findability.suspicious
    assert (suspicion.query, suspicion.document, suspicion.gold, suspicion.by) == (4, 2 * N, 4, 2)
    assert suspicion.similarity == 1
    assert "unjudged, above gold for 2 of 3 retrievers" in suspicion.evidence
    assert not inspected(one, {"a": above, "b": below}).findability.suspicious  # half is not most
    other = placed(*rows, [30, 4])
    assert not inspected(one, {"a": other, "b": other}).findability.suspicious  # above gold, and not like it


def test_titles_are_part_of_what_is_compared() -> None:
    """Of many collections, some documents are a title alone."""
    one = dataset()
    titled = replace(one, corpus=replace(one.corpus, titles=one.corpus.texts, texts=[""] * len(one.corpus)))
    above = placed(*[[] for _ in range(4)], [30, 4])
    assert not inspected(titled, {"a": above, "b": above}).findability.suspicious
    assert not {"empty documents", "near-duplicate documents"} & named(inspected(titled)).keys()


@pytest.mark.parametrize("chunking", [Whole(), Tokens(size=4, overlap=0)], ids=["whole", "in chunks"])
def test_success_and_judged_are_those_of_an_evaluation(chunking: Chunking) -> None:
    rng = np.random.default_rng(0)
    texts = {f"x{i}": worded(rng) for i in range(40)}
    asked = {f"y{i}": worded(rng) for i in range(20)}
    qrels = [(f"y{i}", f"x{i + shift}", grade) for i in range(20) for shift, grade in ((0, 1), (9, 0))]
    one = dataset(texts, asked, qrels).split_documents(chunking)
    rankings = search_cached(BM25(), one.corpus, one.queries.texts, 20, MemoryStore())
    grader = Grader(one.judgments, len(one.queries), len(one.documents), one.document_of)
    means = grader.score(rankings, [parse("Success@5"), parse("Judged@5")]).means()
    found = inspected(one, {"bm25": rankings}, cutoff=5).findability
    assert [*found.success, *found.judged] == [means["Success@5"], means["Judged@5"]]
    assert 0 < means["Success@5"] < 1


def test_a_document_has_the_rank_of_its_first_chunk() -> None:
    whole = dataset()
    cut = whole.split_documents(Tokens(size=8, overlap=0))
    assert len(cut.corpus) > len(whole.corpus)
    found = inspected(cut)
    assert found.counts["documents"] == 2 * N
    assert found.counts["chunks"] == len(cut.corpus)
    assert len(found.words["chunks"]) == len(cut.corpus)
    assert found.findability.success[0] == 1
    assert (found.gold_overlap == inspected(whole).gold_overlap).all()


def test_without_retrievers_what_needs_them_is_not_claimed() -> None:
    found = inspected(dataset(), {})
    assert not found.findability.names
    assert not any("finds" in name for name in named(found))


@hypothesis_settings(max_examples=at_most(20))  # each inspects a dataset
@given(st.lists(st.text("ab ", max_size=6), min_size=1, max_size=8), st.lists(st.text("ab ", max_size=6), max_size=8))
def test_whatever_the_texts_shares_are_shares_and_the_worst_comes_first(asked: list[str], texts: list[str]) -> None:
    one = dataset(
        texts={f"x{i}": text for i, text in enumerate(texts)},
        asked={f"y{i}": text for i, text in enumerate(asked)},
        qrels=[(f"y{i}", f"d{i}", 1) for i in range(len(asked))],
    )
    found = inspected(one, {}, {"train": Queries(["t"], [asked[0]], [""])})
    ranks = [(GRAVITIES.index(f.gravity), -f.share) for f in found.findings]
    assert ranks == sorted(ranks)
    assert all(0 < f.share <= 1 and len(f.examples) <= 20 for f in found.findings)
    assert all(f.text.endswith(".") and f.remedy.endswith(".") for f in found.findings)
    assert bool(plain(asked[0])) == ("leakage from train" in named(found))


def test_a_script_without_spaces_is_counted_and_compared_by_pairs_of_characters() -> None:
    gold = "黑豹队的防守只丢了三百零八分，在联赛中排名第六。"
    assert word_counts([gold]).tolist() == [20]
    assert is_contained("黑豹队的防守", [gold])
    assert not is_contained("黑豹队的进攻", [gold])


@given(st.lists(st.text("abc ?", max_size=12)))
def test_texts_alone(texts: list[str]) -> None:
    counts = word_counts(texts)
    assert counts.tolist() == [len(plain(text).split()) for text in texts]
    assert [i for i, _ in find_copied_queries(texts, texts, 1.0)] == np.flatnonzero(counts).tolist()
    assert all(
        is_contained(text, [f"so {text}, then"]) == (count >= 4) for text, count in zip(texts, counts, strict=True)
    )


def test_documents_in_another_language_than_the_analyzer_are_a_finding() -> None:
    texts = ["Der alte Leuchtturm steht am nördlichen Pier und leuchtet für die Schiffe."] * 3
    (finding,) = language_findings(texts, Analyzer())
    assert finding.remedy == "Evaluate with analyzer=german."
    assert (finding.count, finding.of) == (3, 3)
    assert not list(language_findings(texts, Analyzer(stemmer="german", stopwords=None)))
    assert not list(language_findings(texts, Analyzer(identifiers=True)))
    (unstemmed,) = language_findings(texts, Analyzer(stemmer=None, stopwords=None))
    assert "does not stem" in unstemmed.text


@pytest.mark.parametrize(("mode", "gravity"), [("auto", "info"), ("false", "error")])
def test_queries_that_are_documents_are_named_and_are_no_leakage(mode: ExcludeSelf, gravity: str) -> None:
    """A query that is a document is in every split of its collection."""
    one = dataset(asked={f"d{i}": document(i) for i in range(10)}, qrels=[(f"d{i}", f"d{i + 1}", 1) for i in range(10)])
    found = named(inspected(replace(one, exclude_self=mode), others={"dev": one.queries}))
    finding = found["queries that are documents"]
    assert (finding.gravity, finding.count, finding.of) == (gravity, 10, N + 10)
    assert found["leakage from dev"].count == N


def test_queries_with_the_text_of_a_document_are_named_and_are_no_leakage() -> None:
    """Their ids carry a suffix, so that only the text shows that they are documents."""
    asked = {f"d{i}-query": document(i) for i in range(10)}
    one = dataset(asked=asked, qrels=[(f"d{i}-query", f"d{i + 1}", 1) for i in range(10)])
    found = named(inspected(one, others={"dev": one.queries}))
    finding = found["queries with the text of a document"]
    assert (finding.gravity, finding.count, finding.of) == ("warning", 10, N + 10)
    assert finding.examples[3]["document"] == "d3"
    assert found["leakage from dev"].count == N
    found = named(inspected(replace(one, exclude_self=OwnIdRule(pattern="-query$")), others={"dev": one.queries}))
    assert found["queries that are documents"].count == 10
    assert "queries with the text of a document" not in found
    assert found["leakage from dev"].count == N


def test_queries_that_look_like_variants_are_a_finding_until_they_are_clusters() -> None:
    asked = {f"v{i}": f"word{i}x1 word{i}x5 please, number {i}!" for i in range(5)}
    one = dataset(asked=asked, qrels=[(f"v{i}", f"d{i}", 1) for i in range(5)])
    finding = named(inspected(one))["query variants"]
    assert (finding.gravity, finding.count, finding.of) == ("warning", 10, N + 5)
    assert "dataset.cluster_field=FIELD" in finding.remedy
    clusters = [*map(str, range(N)), *map(str, range(5))]
    assert "query variants" not in named(inspected(replace(one, queries=replace(one.queries, clusters=clusters))))


def test_the_field_that_variants_share_is_named() -> None:
    asked = {f"v{i}": f"another way to say thing {i}, in words of its own {'xyz'[i] * 9}" for i in range(3)}
    one = dataset(asked=asked, qrels=[(f"v{i}", f"d{i}", 1) for i in range(3)])
    topics = [*range(N), *range(3)]
    metadata = [{"topic": topic, "kind": "easy" if topic % 2 else "hard"} for topic in topics]
    finding = named(inspected(replace(one, queries=replace(one.queries, metadata=metadata))))["query variants"]
    assert (finding.count, finding.remedy) == (6, "Test by cluster: dataset.cluster_field=topic.")
