from __future__ import annotations

import random

from retrievers.lexical.analyzer import Analyzer
from runner.features.synthesize.base import Bundle, Chunks
from runner.features.synthesize.material import Material
from runner.features.synthesize.terms import count_terms

WORDS = [
    first + rest for first in "bdfgklm" for rest in ("arn", "ilt", "ock", "ump", "esk", "oft", "ald", "erp", "unx")
]


def test_sentences_of_the_same_words_say_as_much_in_whatever_order_the_words_are() -> None:
    chance = random.Random(0)
    said = [f"The {' '.join(chance.sample(WORDS, len(WORDS)))}." for _ in range(40)]
    others = [" ".join(WORDS[at:]) for at in range(len(WORDS))]  # so that no two words weigh the same
    texts = [" ".join(said), *others]
    chunks = Chunks([f"d{at}" for at in range(len(texts))], ["0"] * len(texts), texts)
    material = Material(chunks, Bundle((0,), (1,)), count_terms(chunks, Analyzer()))
    assert material.sentences == material.prose.sentences == tuple(said)
