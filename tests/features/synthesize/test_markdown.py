"""Markdown of every origin leaves headings and paragraphs that a reader sees, and nothing else."""

from __future__ import annotations

import pytest

from runner.features.synthesize.markdown import HOLE, Block, parse_blocks, plain_text


def texts(markdown: str) -> list[str]:
    return [block.text for block in parse_blocks(markdown)]


@pytest.mark.parametrize(
    "noise",
    [
        "---\ntitle: noise\n---\n",
        '+++\ntitle = "noise"\n+++\n',
        "```sh\nnoise --now\n```\n",
        "    noise = indented code\n",
        "| noise | noise |\n|---|---|\n| noise | noise |\n",
        '<div class="noise">noise</div>\n',
        "<table>\n\n<tr><td>noise</td></tr>\n\n</table>\n",
        "<!-- noise\n\nnoise -->\n",
        '{{< noise arg="noise" >}}\n',
        "{% include noise.html %}\n",
        "import Noise from './noise'\n",
        ":::noise\n",
        "> [!NOISE]\n",
        "[noise]: https://noise.example/noise\n",
        "![](noise.png)\n",
    ],
)
def test_markup_and_code_leave_no_text(noise: str) -> None:
    blocks = texts(f"{noise}\nThe lamp burns all night.\n")
    assert blocks == ["The lamp burns all night."]


def test_links_and_emphasis_leave_only_their_text() -> None:
    text = "Ask the [harbour master](https://harbour.example/ask) **before** you `moor` at [the quay][q].[^1]"
    assert plain_text(text) == "Ask the harbour master before you moor at the quay."


def test_a_shortcode_leaves_a_hole() -> None:
    assert plain_text("Since {{< version >}} it waits.") == f"Since {HOLE} it waits."


def test_emoji_are_left_out_and_other_colons_stay() -> None:
    assert plain_text("Report bugs :material-bug: at 10:30: `std::quay::moor` :+1:") == (
        "Report bugs at 10:30: std::quay::moor"
    )


def test_headings_lose_their_anchor_and_keep_their_capitals() -> None:
    assert parse_blocks("## The *Tide* Table {#tide}\n\nIt is old.") == [
        Block("heading", "The Tide Table"), Block("paragraph", "It is old."),
    ]  # fmt: skip


def test_items_and_quotes_are_paragraphs_and_lines_are_joined() -> None:
    assert texts("- [ ] Light the\n  lamp.\n- Shut the gate.\n\n> Mind the\n> step.") == [
        "Light the lamp.", "Shut the gate.", "Mind the step.",
    ]  # fmt: skip


def test_a_code_name_after_a_word_keeps_its_space() -> None:
    assert plain_text("Set its `.spec.size` field .") == "Set its .spec.size field."
