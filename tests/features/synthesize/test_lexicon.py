from __future__ import annotations

from pathlib import Path

import pytest

from retrievers.lexical.analyzer import Analyzer
from runner.config.objects import ConfigError
from runner.features.synthesize.base import Chunks
from runner.features.synthesize.lexicon import check_lexicon, lexicon_identity, load_synonyms

NOTHING = Chunks([], [], [])

# Lines as the files of WordNet have them (wndb(5)); the words are few and the relations are left out.
DATA_NOUN = """  1 This is a header.
00000010 06 n 02 vessel 0 watercraft 0 000 | a craft that floats
00000020 06 n 02 vessel 1 blood_vessel 0 000 | a tube in the body
"""
INDEX_NOUN = """  1 This is a header.
vessel n 2 1 @ 2 9 00000010 00000020
watercraft n 1 1 @ 1 0 00000010
"""
DATA_VERB = "00000030 30 v 02 depart 0 set_out 0 000 01 + 02 00 | leave\n"
INDEX_VERB = "depart v 1 0 1 3 00000030\nset_out v 1 0 1 0 00000030\n"


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    files = {"data.noun": DATA_NOUN, "index.noun": INDEX_NOUN, "data.verb": DATA_VERB, "index.verb": INDEX_VERB}
    for part in ("adj", "adv"):
        files |= {f"data.{part}": "", f"index.{part}": ""}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_wordnet_gives_the_words_of_the_most_frequent_sense(wordnet: Path) -> None:
    synonyms = load_synonyms(str(wordnet), NOTHING, Analyzer())
    assert tuple(synonyms("vessels")) == ("watercrafts",)
    assert "set outed" in synonyms("departed"), "which no chunk has"
    assert not synonyms("berth")


def test_a_list_of_ones_own_gives_the_others_of_a_line(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("# mine\nberth, mooring, landing place\n")
    assert tuple(load_synonyms(str(file), NOTHING, Analyzer())("berths")) == ("moorings", "landing places")


def test_other_words_have_the_form_of_the_word(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("try, move\nboat, ferry, launch\n")
    synonyms = load_synonyms(str(file), NOTHING, Analyzer())
    assert tuple(synonyms("boats")) == ("ferries", "launches")
    assert "moved" in synonyms("tried")
    assert "moving" in synonyms("trying")
    assert not synonyms("boatness")


def test_english_words_are_none_for_chunks_in_another_language() -> None:
    text = "Die Schleuse öffnet um sechs Uhr, und jedes Schiff zahlt eine Gebühr an die Hafenmeisterei."
    chunks = Chunks(["a", "b"], ["0", "0"], [text, text])
    assert not load_synonyms("bundled:english.txt", chunks, Analyzer())("die")


def test_the_bundled_list_is_there_and_never_gives_a_word_for_itself() -> None:
    synonyms = load_synonyms("bundled:english.txt", NOTHING, Analyzer())
    assert "deleting" in synonyms("removing")
    assert "delete" in synonyms("remove")
    assert "remove" not in synonyms("removed")


def test_company_gives_words_that_stand_in_the_same_places() -> None:
    berths = [
        f"the {boat} lies at the quay with its {part}" for boat in ("ferry", "tug") for part in ("anchor", "rope")
    ]
    bread = [f"the {shop} bakes {bread} in an oven" for shop in ("baker", "cook") for bread in ("rolls", "cake")]
    texts = (berths + bread) * 3
    chunks = Chunks([str(at) for at in range(len(texts))], ["0"] * len(texts), texts)
    near = load_synonyms("cooccurrence", chunks, Analyzer())("ferry")
    assert set(near[:4]) <= {"tug", "quay", "anchor", "rope", "lies", "its"}
    assert not load_synonyms("cooccurrence", chunks, Analyzer())("submarine")


@pytest.mark.parametrize("name", ["nowhere.txt", "bundled:klingon.txt"])
def test_a_lexicon_that_is_not_there_is_refused_with_the_ways_out(name: str) -> None:
    with pytest.raises(ValueError, match=r"no such file or folder; .*wordnet-base.*cooccurrence"):
        check_lexicon(name)


def test_a_folder_that_is_not_wordnets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"contains no data\.noun"):
        check_lexicon(str(tmp_path))


def test_a_broken_wordnet_is_one_clear_error(wordnet: Path) -> None:
    (wordnet / "index.noun").write_text("vessel n 1 0 1 9 00000099\n")
    with pytest.raises(ConfigError, match="lexicon="):
        load_synonyms(str(wordnet), NOTHING, Analyzer())


def test_identity_is_of_what_the_files_say(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("a, b\n")
    before = lexicon_identity(str(file))
    file.write_text("a, c\n")
    assert lexicon_identity(str(file)) != before
