"""The data of a page: numbers survive compression, and equal data gives equal bytes."""

from __future__ import annotations

import base64
import gzip
import math

import numpy as np
import orjson
import pytest

from runner.pages.explorer.data import LEVELS, DataColumn, encode_json, encode_scores


def decode(encoded: str) -> bytes:
    return gzip.decompress(base64.b64decode(encoded))


@pytest.mark.parametrize("low, high", [(0.0, 1.0), (-3.0, 40.0), (0.5, 0.5)])
def test_a_score_survives_within_half_a_step(low: float, high: float) -> None:
    scores = np.random.default_rng(0).uniform(low, high, (7, 11))
    scores[2, 3] = math.nan
    encoded = encode_scores(scores)
    assert (encoded["systems"], encoded["queries"]) == (7, 11)
    planes = np.frombuffer(decode(encoded["planes"]), dtype=np.uint8).astype(np.int64)
    levels = (256 * planes[:77] + planes[77:]).reshape(11, 7).T
    assert np.array_equal(levels == LEVELS + 1, np.isnan(scores))
    error = np.abs(encoded["low"] + encoded["step"] * levels - scores)
    assert np.nanmax(error) <= 0.5 * (high - low) / LEVELS + 1e-12


def test_equal_data_gives_equal_text() -> None:
    assert encode_json({"a": [1.5, math.nan]}) == encode_json({"a": [1.5, math.nan]})
    assert orjson.loads(decode(encode_json({"a": [1.5, math.nan]}))) == {"a": [1.5, None]}


def test_numbers_are_rounded_and_texts_are_not_touched() -> None:
    column = DataColumn("c", "c", "c", [0.12345678949, None], "score4").to_dict()
    assert column["values"] == [0.123456789, None]
    assert DataColumn("t", "t", "t", ["0.123456789"]).to_dict()["values"] == ["0.123456789"]
