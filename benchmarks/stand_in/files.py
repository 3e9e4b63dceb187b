"""The files of a trial: queries and judgments, and the encoder of the vectors as a sentence-transformers model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from benchmarks.stand_in.documents import DIMENSIONS, Documents, spell

UNKNOWN = "[UNK]"


def write_files(documents: Documents, folder: Path, queries: int) -> None:
    """Write `queries.jsonl`, `qrels.tsv` and the folder `model`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_model(documents, folder / "model")
    with (folder / "queries.jsonl").open("w") as questions, (folder / "qrels.tsv").open("w") as qrels:
        for name, text, grades in documents.iter_questions(queries):
            print(json.dumps({"_id": name, "text": text}), file=questions)
            for document, grade in grades.items():
                print(name, document, grade, sep="\t", file=qrels)


def write_model(documents: Documents, folder: Path) -> None:
    """Write a model that embeds a text like the documents: by the mean of the vectors of its words."""
    static = folder / "0_StaticEmbedding"
    static.mkdir(parents=True, exist_ok=True)
    modules = [{"idx": 0, "name": "0", "path": static.name, "type": "sentence_transformers.models.StaticEmbedding"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "config_sentence_transformers.json").write_text("{}")
    words = {UNKNOWN: 0} | {spell(number): number + 1 for number in range(documents.vocabulary)}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": words, "unk_token": UNKNOWN},
    }
    (static / "tokenizer.json").write_text(json.dumps(tokenizer))
    vectors = np.concatenate([np.zeros((1, DIMENSIONS), np.float32), documents.word_vectors]).astype("<f4")
    tensor = {"dtype": "F32", "shape": vectors.shape, "data_offsets": [0, vectors.nbytes]}
    head = json.dumps({"embedding.weight": tensor}).encode()
    with (static / "model.safetensors").open("wb") as file:  # the format of safetensors: length, head, numbers
        file.write(len(head).to_bytes(8, "little") + head)
        file.write(vectors.tobytes())
