from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runner.features.synthesize.prose import parse_prose, plain_text
from tests.features.synthesize.pages import QUAY


def test_headings_come_outermost_first_and_without_markup() -> None:
    assert parse_prose(QUAY, "Mooring").headings == ("Mooring", "Mooring Scheduler", "Tide windows")
    assert parse_prose("Boats.", "Guide > Ships > Tugs").headings == ("Guide", "Ships", "Tugs")
    assert parse_prose("Over the sea\n============\n\nShips go there.\n\nBack\n----\n").headings == (
        "Over the sea",
        "Back",
    )


def test_sentences_are_as_a_reader_sees_them() -> None:
    sentences = parse_prose(QUAY).sentences
    assert "The Mooring Scheduler assigns a berth to every vessel that asks for one." in sentences
    assert not any("Pilots" in sentence for sentence in sentences), "a shortcode may hide any word of it"


def test_an_abbreviation_ends_no_sentence() -> None:
    text = "Tugs, e.g. The Otter, are strong. Dr. Reed steers. They cost 4.5 million, cf. Fig. 2 of the report."
    assert parse_prose(text).sentences == (
        "Tugs, e.g. The Otter, are strong.", "Dr. Reed steers.", "They cost 4.5 million, cf. Fig. 2 of the report.",
    )  # fmt: skip


def test_only_complete_sentences_are_passages() -> None:
    passages = parse_prose(
        "Berths near [the gate](x) are for tugs alone, since these leave often. Tugs go first at night."
    )
    assert passages.passages[0] == "Tugs go first at night."
    assert "are for tugs alone" not in passages.passages, "four words are hardly a passage"
    assert "since these leave often." not in passages.passages


def test_code_at_the_start_of_a_chunk_is_not_prose() -> None:
    prose = parse_prose("kind: Berth\nname is not a word of prose\n```\n\nTugs leave the harbour early on Sundays.\n")
    assert prose.sentences == ("Tugs leave the harbour early on Sundays.",)


def test_plain_text_is_unchanged() -> None:
    text = "Cells that lack p53 divide faster (3.2 times) than others do."
    assert plain_text(text) == text
    assert parse_prose(text).passages == (text,)


def test_a_script_without_spaces_has_sentences_and_passages() -> None:
    text = "港口每天接待很多船只和旅客。码头旁边有一座古老的灯塔。"
    assert parse_prose(text).passages == ("港口每天接待很多船只和旅客。", "码头旁边有一座古老的灯塔。")


@given(st.text(alphabet="ab .!?#*`_[]()<>{}|-=~$\n\t0é港", max_size=300))
def test_passages_are_substrings_on_one_line_whatever_the_text(text: str) -> None:
    for passage in parse_prose(text).passages:
        assert passage in text
        assert "\n" not in passage


def test_part_of_a_table_gives_no_prose() -> None:
    assert (
        parse_prose(
            'flag</td>\n</tr>\n<tr>\n<td style="line-height: 1"><p>The path of a key file for TLS</p></td>'
        ).passages
        == ()
    )


def test_a_bullet_begins_an_item_of_a_list() -> None:
    assert parse_prose("• Lamps are lit at dusk.\n• Gates are shut at ten.").sentences == (
        "Lamps are lit at dusk.", "Gates are shut at ten.",
    )  # fmt: skip
