"""Files of lines, JSON and judgments: what is tolerated, and what an error says."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.datasets import files
from runner.datasets.base import DatasetError
from runner.datasets.delimited import iter_csv
from runner.datasets.files import SourceRecord

RECORD = SourceRecord(
    "a.jsonl:", 7, {"id": 5, "text": None, "score": "2", "list": [1], "yes": True, "empty": "", "half": 0.5}
)


def test_a_whole_number_is_an_id_and_null_is_an_empty_text() -> None:
    assert (RECORD.identifier("_id", "id"), RECORD.text("text"), RECORD.grade("score")) == ("5", "", 2)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: RECORD.text("titel"), "a.jsonl:7: 'titel' is missing; the fields are id, text, score,"),
        (lambda: RECORD.identifier("_id", "docno"), "a.jsonl:7: '_id' or 'docno' is missing"),
        (lambda: RECORD.text("id"), "a.jsonl:7: 'id' is 5; it must be text"),
        (lambda: RECORD.identifier("text"), "a.jsonl:7: 'text' is null; an id must be text"),
        (lambda: RECORD.identifier("empty"), "a.jsonl:7: 'empty' is ''; an id must be text"),
        (lambda: RECORD.identifier("yes"), "a.jsonl:7: 'yes' is True; an id must be text"),
        (lambda: RECORD.identifier("half"), "a.jsonl:7: 'half' is 0.5; an id must be text"),
        (lambda: RECORD.grade("half"), "a.jsonl:7: the grade 0.5 is not a whole number"),
        (lambda: RECORD.grade("list"), "a.jsonl:7: the grade [1] is not a whole number"),
        (lambda: RECORD.grade("grade"), "a.jsonl:7: 'grade' is missing"),
        (lambda: SourceRecord("a:", 1, {}).text("x"), "a:1: 'x' is missing; the fields are none"),
    ],
)
def test_a_field_that_is_missing_or_of_another_type_is_named(read: object, message: str) -> None:
    assert callable(read)
    with pytest.raises(DatasetError, match=re.escape(message)):
        read()


@pytest.mark.parametrize("grade", ["2", 2, 2.0, "2.0", " 2 "])
def test_a_whole_grade_may_be_written_in_several_ways(grade: object) -> None:
    assert files.grade_of(grade) == 2


@pytest.mark.parametrize("grade", ["high", "1.5", "", "nan", "inf", None, 2**31, [1], "1e2", "1_0", "\u0661", True])
def test_another_grade_is_refused(grade: object) -> None:
    with pytest.raises(ValueError, match="not a whole number"):
        files.grade_of(grade)


@pytest.mark.parametrize("packed", [False, True])
def test_a_byte_order_mark_blank_lines_and_windows_line_ends_are_tolerated(tmp_path: Path, packed: bool) -> None:
    content = b'\xef\xbb\xbf{"id": 1}\r\n\r\n  \n{"id": 2}'
    path = tmp_path / ("a.jsonl.gz" if packed else "a.jsonl")
    path.write_bytes(gzip.compress(content) if packed else content)
    assert [(record.number, record.fields) for record in files.json_lines(path)] == [(1, {"id": 1}), (4, {"id": 2})]


def test_an_unusual_line_separator_does_not_end_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("1\ta\x85b\u2028c\n", encoding="utf-8")
    assert list(files.text_lines(path)) == [(1, "1\ta\x85b\u2028c")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "a.jsonl:2: invalid JSON ("),
        ("[1]", "a.jsonl:2: expected a JSON object, found [1]"),
        ('{"text": "\\ud800"}', "a.jsonl:2: invalid JSON ("),
        ('{"id": 1}{"id": 2}', "a.jsonl:2: invalid JSON ("),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n' + line, encoding="utf-8")
    with pytest.raises(DatasetError, match=re.escape(message)):
        list(files.json_lines(tmp_path / "a.jsonl"))


def test_text_in_another_encoding_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes("1\tMünchen\n".encode("latin-1"))
    with pytest.raises(DatasetError, match=r"a\.tsv:1: not utf-8 text"):
        list(files.text_lines(tmp_path / "a.tsv"))
    assert list(files.text_lines(tmp_path / "a.tsv", "latin-1")) == [(1, "1\tMünchen")]
    with pytest.raises(DatasetError, match=r"dataset.encoding=klingon: unknown encoding"):
        list(files.text_lines(tmp_path / "a.tsv", "klingon"))


# Named, as an archive holds the second of its making and the names of tests must not change.
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(gzip.compress(b"a" * 1000)[:20], id="cut"),
        pytest.param(gzip.compress(b"a")[:-9] + b"\xff" * 9, id="spoilt end"),
    ],
)
def test_a_damaged_archive_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.gz").write_bytes(content)
    with pytest.raises(DatasetError, match=r"a\.gz: cannot be read \("):
        list(files.lines(tmp_path / "a.gz"))


def test_reading_a_folder_as_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"cannot be read .Is a directory"):
        files.json_content(tmp_path)


def test_a_missing_file_names_its_setting_and_an_archive_stands_in(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"^dataset\.topics=.*a\.txt: no such file or folder$"):
        files.resolve_path(tmp_path / "a.txt", "topics")
    (tmp_path / "a.txt.gz").touch()
    assert files.resolve_path(tmp_path / "a.txt", "topics") == tmp_path / "a.txt.gz"
    (tmp_path / "a.txt").touch()
    assert files.resolve_path(tmp_path / "a.txt", "topics") == tmp_path / "a.txt"


def test_a_pattern_is_a_file_a_folder_or_a_glob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.txt", "a.txt", "sub/c.txt", "d[1].txt", ".hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)

    def list_matches(pattern: str) -> list[str]:
        return [path.name for path in files.matching(pattern, "documents")]

    assert list_matches("a.txt") == ["a.txt"]
    assert list_matches(".") == list_matches(str(tmp_path)) == ["a.txt", "b.txt", "d[1].txt", "c.txt"]
    assert list_matches("[ab].txt") == list_matches(f"{tmp_path}/[ab].txt") == ["a.txt", "b.txt"]
    assert list_matches("**/c.txt") == ["c.txt"]
    assert list_matches("d[1].txt") == ["d[1].txt"]
    with pytest.raises(DatasetError, match=r"^dataset\.documents=x\*: no file matches$"):
        list_matches("x*")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match=r"^dataset\.documents=empty: no file matches"):
        list_matches("empty")


def test_a_key_that_occurs_twice_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n{"id": 1, "text": "a", "text": "b"}\n')
    with pytest.raises(DatasetError, match=r"a\.jsonl:2: the key 'text' occurs twice in an object; keep one"):
        list(files.json_lines(tmp_path / "a.jsonl"))


def test_a_column_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text,text\n1,a,b\n")
    with pytest.raises(DatasetError, match=r"a\.csv:1: the column 'text' occurs twice; keep one"):
        list(iter_csv(tmp_path / "a.csv"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}".encode("utf-16"), "the file is UTF-16 text; save it as UTF-8"),
        (b"PK\x03\x04rest", "the file is a zip archive or a document of an office program; unpack it"),
        (b"PAR1rest", "the file is a Parquet file"),
    ],
    ids=["UTF-16", "zip", "Parquet"],
)
def test_a_utf_16_or_binary_file_is_refused_with_its_kind(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(DatasetError, match=message):
        list(files.json_lines(tmp_path / "a.jsonl"))


def test_json_in_another_encoding_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes('{"text": "café"}'.encode("latin-1"))
    with pytest.raises(DatasetError, match=r"a\.jsonl:1: not utf-8 text; save it as UTF-8"):
        list(files.json_lines(tmp_path / "a.jsonl"))


def test_a_fifo_at_the_place_of_a_file_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "corpus.jsonl")
    with pytest.raises(DatasetError, match=r"corpus\.jsonl: expected a regular file, found a FIFO or a device"):
        list(files.json_lines(files.resolve_path(tmp_path / "corpus.jsonl", "path")))
    with pytest.raises(DatasetError, match=r"^/dev/zero: expected a regular file, found a FIFO or a device"):
        list(files.lines(Path("/dev/zero")))


def test_what_the_shell_passes_is_read() -> None:
    reader, writer = os.pipe()
    os.write(writer, b'{"_id": "a"}\n')
    os.close(writer)
    assert [record.fields for record in files.json_lines(Path(f"/dev/fd/{reader}"))] == [{"_id": "a"}]
    os.close(reader)


def test_folders_skip_fifos(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.md")
    (tmp_path / "b.md").write_text("# B")
    assert files.matching(str(tmp_path), "documents") == [tmp_path / "b.md"]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.bz2", "a.jsonl.xz"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_the_first_bytes_not_the_name_say_how_a_file_is_compressed(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes]
) -> None:
    (tmp_path / name).write_bytes(pack(b'\xef\xbb\xbf{"id": "d1"}\n'))
    found = files.resolve_path(tmp_path / "a.jsonl", "documents")
    assert [record.fields for record in files.json_lines(found)] == [{"id": "d1"}]


@pytest.mark.parametrize("content", [bz2.compress(b"a" * 1000)[:30], lzma.compress(b"a" * 1000)[:30]])
def test_a_compressed_file_that_is_cut_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(DatasetError, match=r"a\.jsonl: cannot be read \("):
        list(files.lines(tmp_path / "a.jsonl"))
