"""Text and rows for LaTeX with the package booktabs; texts from data are escaped."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_ASCII = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "#": r"\#", "%": r"\%", "&": r"\&", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"$<$", ">": r"$>$", "|": r"$|$", "\"": "''",
    "[": "{[}", "]": "{]}", "*": "{*}", "`": r"\textquoteleft{}", "-": "{-}",
}  # fmt: skip
"""What LaTeX would take for markup. Brackets and asterisks have a meaning after a line break, hyphens form dashes."""

_SYMBOLS = {
    "\N{EN DASH}": "--", "\N{EM DASH}": "---", "\N{HORIZONTAL ELLIPSIS}": r"\ldots{}",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{MINUS SIGN}": "$-$", "\N{PLUS-MINUS SIGN}": r"$\pm$", "\N{LEFT SINGLE QUOTATION MARK}": "`",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'", "\N{LEFT DOUBLE QUOTATION MARK}": "``",
    "\N{RIGHT DOUBLE QUOTATION MARK}": "''", "\N{RIGHTWARDS ARROW}": r"$\rightarrow$", "\N{DEGREE SIGN}": r"$^{\circ}$",
    "\N{GREEK SMALL LETTER ALPHA}": r"$\alpha$", "\N{GREEK SMALL LETTER BETA}": r"$\beta$",
    "\N{GREEK SMALL LETTER LAMDA}": r"$\lambda$", "\N{LATIN SMALL LETTER SHARP S}": r"{\ss}",
}  # fmt: skip

_ACCENTS = {
    "\N{COMBINING GRAVE ACCENT}": r"\`", "\N{COMBINING ACUTE ACCENT}": r"\'", "\N{COMBINING CIRCUMFLEX ACCENT}": r"\^",
    "\N{COMBINING TILDE}": r"\~", "\N{COMBINING DIAERESIS}": r"\"", "\N{COMBINING CEDILLA}": r"\c",
    "\N{COMBINING CARON}": r"\v", "\N{COMBINING RING ABOVE}": r"\r", "\N{COMBINING MACRON}": r"\=",
    "\N{COMBINING DOT ABOVE}": r"\.", "\N{COMBINING BREVE}": r"\u", "\N{COMBINING DOUBLE ACUTE ACCENT}": r"\H",
}  # fmt: skip


def escape_latex(text: str) -> str:
    """Return a text in one line that every LaTeX engine typesets as it is, in any font encoding.

    A character that LaTeX's standard fonts lack becomes its code point: U+4E2D.
    """
    return "".join(map(_escape_character, " ".join(text.split())))


def render_tabular(
    columns: str, header: Sequence[str], rows: Sequence[Sequence[str]], comments: Sequence[str] = ()
) -> str:
    """Return a tabular environment of texts that are escaped already; `header` has whole lines.

    A comment stands above the row of the same position.
    """
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", *header, r"\midrule"]
    for position, row in enumerate(rows):
        lines += [f"% {_cut_comment(comments[position])}"] if position < len(comments) else []
        lines.append(f"{' & '.join(row)} \\\\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def render_float(tabular: str, caption: str, label: str) -> str:
    """Return a float over both columns with a caption, which is escaped already."""
    parts = [
        r"\begin{table*}[t]",
        r"\centering\small\setlength{\tabcolsep}{4pt}",
        rf"\caption{{{caption}}}",
        rf"\label{{{label}}}",
    ]
    return "\n".join([*parts, tabular, r"\end{table*}"])


def _cut_comment(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _escape_character(character: str) -> str:
    if character in _ASCII:
        return _ASCII[character]
    if " " <= character <= "~":
        return character
    if character in _SYMBOLS:
        return _SYMBOLS[character]
    parts = unicodedata.normalize("NFD", character)
    if len(parts) == 2 and parts[0].isascii() and parts[0].isalpha() and parts[1] in _ACCENTS:
        return f"{_ACCENTS[parts[1]]}{{{parts[0]}}}"
    return f"U+{ord(character):04X}"
