"""Shell commands and the output of programs."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.strategies.texts import texts_of

FRAGMENTS = r"""cat a.py ' " | && ; ( ) <<EOF EOF find -exec xargs bash -c sh grep -rl {} \; \ > >> 2>&1 git show :
    cd $x # ls || -- - -type d -n"""
COMMANDS = texts_of(st.sampled_from([*FRAGMENTS.split(), "\n", ""]), 25)

OUTPUTS = texts_of(
    st.sampled_from(["a.py", "b/c.py", "---", "x:", "total 3", "src/a.py:1:x", "BUILD", "docs", "", "- d.py -"]),
    12,
    separator="\n",
)
