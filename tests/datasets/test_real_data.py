"""Real collections: their published counts, and the first, a middle and the last record of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from runner.datasets.beir import Beir
from runner.datasets.dataset import Dataset
from runner.datasets.golden_json import GoldenJson

# documents, queries, grades with how often each occurs, queries with a gold document
COUNTS = {
    ("adi", "test"): (82, 35, {1: 170}, 35),
    ("cranfield", "test"): (1400, 225, {0: 225, 1: 363, 2: 734, 3: 387, 4: 128}, 225),
    ("scifact", "test"): (5183, 300, {1: 339}, 300),
    ("scifact", "train"): (5183, 809, {1: 919}, 809),
    ("medquad", "test"): (47522, 103, {0: 1366, 1: 614, 2: 189, 3: 142}, 96),
}

# position: id, how the title begins, how the text begins
DOCUMENTS = {
    "adi": {
        0: ("1", "the ibm dsd technical information center", "the ibm data systems division "),
        41: ("42", "new photon composing machine will set ty", "/zip/ is a printout device tha"),
        81: ("82", "machine recognition of linguistic synony", "a theory of synonymy of expres"),
    },
    "cranfield": {
        0: ("1", "experimental investigation of the aerody", "experimental investigation of "),
        700: ("701", "numerical determination of indical lift ", "numerical determination of ind"),
        1399: ("1400", "the buckling shear stress of simply-supp", "the buckling shear stress of s"),
    },
    "scifact": {
        0: ("4983", "Microstructural development of human new", "Alterations of the architectur"),
        2591: ("16119973", "Article", "IBD is characterized by uncont"),
        5182: ("198309074", "Adhesion molecules and chemokines: relat", "Introduction: Among the inflam"),
    },
    "medquad": {
        0: ("ADAM_0000001_Sec1.txt", "What is (are) A guide to clinical trials", ""),
        23761: ("MPlusDrugs_0000653_Sec4.txt", "Are there safety concerns or special pre", ""),
        47521: ("ADAM_0002443_Sec3.txt", "Do I need to see a doctor for Low white ", "If you have any of the followi"),
    },
}

# position: id, how the text begins
QUERIES = {
    ("adi", "test"): {
        0: ("1", "What problems and concerns are there in "),
        17: ("18", "What methods are there for encoding, aut"),
        34: ("35", "Government supported agencies and projec"),
    },
    ("cranfield", "test"): {
        0: ("1", "what similarity laws must be obeyed when"),
        112: ("113", "what data exists on oscillatory aerodyna"),
        224: ("225", "what design factors can be used to contr"),
    },
    ("scifact", "test"): {
        0: ("1", "0-dimensional biomaterials show inductiv"),
        150: ("702", "Localization of PIN1 in the roots of Ara"),
        299: ("1395", "p16INK4A accumulation is  linked to an a"),
    },
    ("scifact", "train"): {
        0: ("0", "0-dimensional biomaterials lack inductiv"),
        404: ("687", "Lamins are found within the inner layer "),
        808: ("1407", "β1/Ketel is able to bind microtubules."),
    },
    ("medquad", "test"): {
        0: ("1", "Noonan syndrome What are the references "),
        51: ("52", "fildena Hello I was wondering if fildena"),
        102: ("104", "Glimepiride Storage & Alloweable Excursi"),
    },
}

# (query id, document id, grade) of the first, the middle and the last judgment in the order of the files
JUDGMENTS = {
    ("adi", "test"): [("1", "17", 1), ("24", "59", 1), ("35", "79", 1)],
    ("cranfield", "test"): [("1", "12", 2), ("115", "185", 3), ("225", "1381", 2)],
    ("scifact", "test"): [("1", "31715818", 1), ("693", "24088502", 1), ("1395", "17717391", 1)],
    ("scifact", "train"): [("0", "31715818", 1), ("713", "18421962", 1), ("1407", "29863668", 1)],
    ("medquad", "test"): [
        ("1", "ADAM_0002818_Sec1.txt", 2),
        ("50", "MPlusDrugs_0000226_Sec9.txt", 1),
        ("104", "GHR_0000019_Sec5.txt", 0),
    ],
}


@pytest.fixture(scope="module", params=list(COUNTS), ids="-".join)
def collection(request: pytest.FixtureRequest, collections: Path) -> tuple[tuple[str, str], Dataset]:
    """Return each collection with its name and split."""
    name, split = request.param
    return request.param, Beir(path=str(collections / name), split=split).load()


def test_a_collection_has_the_counts_that_its_readme_gives(collection: tuple[tuple[str, str], Dataset]) -> None:
    key, dataset = collection
    grades = dict(
        zip(*(column.tolist() for column in np.unique(dataset.judgments.grades, return_counts=True)), strict=True)
    )
    answered = int((dataset.judgments.golds(len(dataset.queries)) > 0).sum())
    assert (dataset.name, dataset.split) == key
    assert (len(dataset.corpus), len(dataset.queries), grades, answered) == COUNTS[key]
    assert not dataset.corpus.metadata


def test_a_collection_has_the_records_of_its_files(collection: tuple[tuple[str, str], Dataset]) -> None:
    key, dataset = collection
    corpus, queries, judgments = dataset.corpus, dataset.queries, dataset.judgments
    found = {i: (corpus.ids[i], corpus.titles[i][:40], corpus.texts[i][:30]) for i in DOCUMENTS[key[0]]}
    assert found == DOCUMENTS[key[0]]
    assert {i: (queries.ids[i], queries.texts[i][:40]) for i in QUERIES[key]} == QUERIES[key]
    rows = (0, len(judgments) // 2, len(judgments) - 1)
    assert JUDGMENTS[key] == [
        (queries.ids[judgments.queries[i]], corpus.ids[judgments.documents[i]], judgments.grades[i]) for i in rows
    ]


def test_the_judgments_of_a_collection_are_those_of_its_file(collections: Path) -> None:
    dataset = Beir(path=str(collections / "cranfield")).load()
    rows = (line.split("\t") for line in (collections / "cranfield/qrels/test.tsv").read_text().splitlines()[1:])
    judgments = dataset.judgments
    columns = zip(judgments.queries, judgments.documents, judgments.grades, strict=True)
    found = {(dataset.queries.ids[q], dataset.corpus.ids[d]): g for q, d, g in columns}
    assert found == {(query, document): int(grade) for query, document, grade in rows}


def test_paraphrases_are_the_same_queries_in_other_words(collections: Path) -> None:
    dataset = Beir(path=str(collections / "medquad"), queries="queries.paraphrase.jsonl", max_documents=3000).load()
    assert (len(dataset.queries), len(dataset.judgments), len(dataset.corpus)) == (103, 2311, 3000)


def test_queries_in_another_language_can_be_used(collections: Path) -> None:
    dataset = Beir(path=str(collections / "xquad-en"), queries="../xquad-zh/queries.jsonl").load()
    assert (len(dataset.queries), dataset.queries.texts[0]) == (1190, "黑豹队的防守丢了多少分？")


def test_a_real_golden_dataset_loads(real_golden: Path) -> None:
    dataset = GoldenJson(
        path=str(real_golden / "retrieval_evaluation_dataset.json"), items=str(real_golden / "golden_analyses.json")
    ).load()
    queries, golds = dataset.queries, dataset.judgments.golds(50)
    assert (len(queries), len(dataset.corpus), len(dataset.judgments)) == (50, 55, 103)
    assert np.bincount(dataset.judgments.grades).tolist() == [0, 0, 17, 86]
    assert [queries.ids[i] for i in np.flatnonzero(golds == 0).tolist()] == [f"q{n:03}" for n in range(43, 51)]
    assert [(queries.ids[i], queries.texts[i], queries.types[i], int(golds[i])) for i in (0, 25, 49)] == [
        ("q001", "TeamLab digital art museum Fukuoka", "single-item-precision", 1),
        ("q026", "anime otaku culture Japan travel", "multi-item-recall", 3),
        ("q050", "cryptocurrency investment tips", "edge-case-no-results", 0),
    ]
    assert queries.metadata[49] == {"notes": "Completely unrelated domain", "expected_count": 0}
    assert [(dataset.corpus.ids[i][:8], dataset.corpus.texts[i][:40]) for i in (0, 27, 54)] == [
        ("f5129142", "TeamLab Forest Fukuoka immersive digital"),
        ("354b21da", "Kuoe Kyoto: Old Smith 90-002 Bronze watc"),
        ("f241cd64", "Ryokan stay at Nagominoyado Hanagokoro w"),
    ]
