"""Results of a synthesis."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from runner.features.synthesize.base import Chunks
from runner.features.synthesize.loading import rows
from runner.features.synthesize.pipeline import SynthesisResult
from tests.features.synthesize.worlds import make_candidate
from tests.strategies.texts import texts_of

SENTENCES = st.sampled_from(["One is old.", "Two is new. ", "Two", " is new.\n\n", "# Two\n", "新しい。", "\r\n- - "])


@st.composite
def synthesis_results(draw: st.DrawFn) -> SynthesisResult:
    """Draw a result whose documents repeat titles, chunks and sentences, some of them in rejected chunks."""
    texts = draw(st.lists(texts_of(SENTENCES, 5, min_size=1, separator=""), min_size=2, max_size=8))
    texts = [text if any(map(str.isalpha, text)) else f"{text}Two" for text in texts]
    n = len(texts)
    owners = draw(st.lists(st.sampled_from(["a", "b"]), min_size=n, max_size=n))
    titles = draw(st.lists(st.sampled_from(["", "Two", "One is old."]), min_size=n, max_size=n))
    source = Chunks(owners, [str(i) for i in range(n)], texts, titles, np.ones((n, 1), np.float32))
    kept = np.array(sorted(draw(st.sets(st.integers(0, n - 1), min_size=1))))
    goldens = st.lists(st.integers(0, len(kept) - 1), min_size=1, max_size=3, unique=True).map(tuple)
    queries = st.sampled_from(["two new", "one old", "Two is new.", "new", "新しい"])
    candidates = draw(st.lists(st.builds(make_candidate, queries, st.just("keyword"), goldens), min_size=1, max_size=3))
    bundles = [candidate.request.bundle for candidate in candidates]
    return SynthesisResult(rows(source, kept), source, [], bundles, ["keyword"], candidates, exhausted=False)
