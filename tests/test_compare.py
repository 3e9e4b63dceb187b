"""The verbs compare and promote: whatever a result is called, what becomes of it, and the exit codes."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from runner.__main__ import main
from runner.comparison.leaderboard import build_leaderboard
from runner.config.objects import ConfigError
from runner.evaluation.records import load_record, save_record
from runner.evaluation.result import Result
from runner.results.lookup import Named, as_typed
from runner.results.promotions import load_promotions
from runner.statistics.settings import Statistics
from runner.tracking.fetching import Runs
from runner.tracking.logged import Sweep, this_time
from runner.tracking.record import Failed, Finished
from runner.tracking.settings import Tracking
from runner.tracking.tracker import Tracker
from tests.features.golden.test_golden_report import query, report
from tests.pages.factory import result

QUICK = ("statistics.permutations=500",)
Run = Callable[..., tuple[str, str]]


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: it has a store of runs, and two records, `good` and `bad`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    save_record(result("good"), tmp_path / "good")
    save_record(degraded(result("bad")), tmp_path / "bad")
    return tmp_path


@pytest.fixture
def run(here: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a verb and returns what it prints, and what it says besides."""

    def run(*arguments: str, code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        assert main([*arguments, *(QUICK if arguments[0] == "compare" else ())]) == code
        return tuple(capsys.readouterr())  # type: ignore[return-value]  # out and err

    return run


def degraded(of: Result) -> Result:
    return replace(of, scores=of.scores - 0.2, means={m: mean - 0.2 for m, mean in of.means.items()})


def reports(folder: Path) -> None:
    queries = [query(f"q{i}", {"a": "high"}, ["a", "b"] if i % 2 else ["b", "a"]) for i in range(4)]
    (folder / "single.json").write_text(json.dumps(report(*queries, search_type="bm25")))
    both = {"bm25": {"query_results": queries}, "vector": {"query_results": queries[:]}}
    several = {"run_id": "r", "config": {"top_k_values": [1, 3]}, "results_by_search_type": both}
    (folder / "several.json").write_text(json.dumps(several))


def test_a_degraded_result_fails_the_gate_and_an_identical_one_passes(run: Run) -> None:
    out, _ = run("compare", "baseline=good", "candidate=bad", code=1)
    assert "gate failed" in out
    assert "bad: nDCG@10 fell by 0.2000" in out
    out, _ = run("compare", "baseline=good", "candidate=good/result.json")
    assert "gate passed: 5 of 5 rules hold" in out


def test_an_undecided_loss_of_all_hits_names_the_floor_that_fails_it(run: Run, here: Path) -> None:
    (here / "qrels.tsv").write_text("".join(f"q{i}\t0\td{i}\t1\n" for i in range(15)))
    for name, found in (("before", 3), ("after", 0)):  # the other queries have the gold of the next one
        (here / f"{name}.json").write_text(json.dumps({f"q{i}": [f"d{i + (i >= found)}"] for i in range(15)}))
    pair = ("compare", "dataset=judged", "dataset.qrels=qrels.tsv", "baseline=before.json", "candidate=after.json")
    out, _ = run(*pair, "+gate.drops={R@10: 0.1}", code=4)
    lost = " ".join(out.split()).partition("R@10 fell by 0.2000, from 0.2000 to 0.0000: ")[2]
    assert re.match(r"more than the 0.1 that is allowed, but not significant \(p = 0.2\d\d with 15 queries\)", lost)
    floor = "'+gate.floors={R@10: 0.1}'"
    assert f"; a floor fails such a loss without a test: {floor}" in lost
    out, _ = run(*pair, "+gate.drops={R@10: 0.1}", floor.strip("'"), code=1)
    assert "R@10 is 0.0000, below 0.1" in " ".join(out.split())


def test_a_drop_that_may_be_noise_is_undecided_with_an_exit_code_of_its_own(run: Run, here: Path) -> None:
    """One query of thirty loses all that it had."""
    good = result("good")
    scores = good.scores.copy()
    scores[:, 0] = 0
    save_record(replace(good, name="unlucky", scores=scores), here / "unlucky")
    out, _ = run("compare", "baseline=good", "candidate=unlucky", code=4)
    assert "gate undecided: 2 of 5 rules undecided, no rule violated" in out
    told = " ".join(out.partition("gate undecided")[2].split())
    assert "unlucky: nDCG@10 fell by 0.0" in told
    assert "more than the 0.01 that is allowed, but not significant (p = 1.000 with 30 queries); about" in told
    assert "more queries would decide it" in told
    _, err = run("compare", "baseline=good", "candidate=unlucky", "gate.undecided=warn")
    assert "warning: gate undecided: 2 of 5 rules undecided" in err
    _, err = run("compare", "baseline=good", "candidate=unlucky", "gate.undecided=pass")
    assert "warning: gate" not in err
    document = json.loads(run("compare", "baseline=good", "candidate=unlucky", "--json", code=4)[0])
    assert (document["gate"]["verdict"], document["gate"]["passed"]) == ("undecided", False)


@pytest.mark.parametrize("columns", [60, 100])
def test_no_line_is_longer_than_there_is_room_for_and_no_word_is_broken(
    run: Run, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    out, _ = run("compare", "baseline=good", "candidate=bad", code=1)
    assert max(map(len, out.splitlines())) <= columns
    told = " ".join(out.split())
    assert "bad is worse than good in nDCG@10: -0.2000" in told
    assert re.search(r"corrected for their \d+ tests", told)


def test_without_rules_nothing_fails(run: Run) -> None:
    out, _ = run("compare", "baseline=good", "candidate=bad", "gate=none")
    assert "bad is worse than good in nDCG@10: -0.2000" in out
    assert "gate" not in out


def test_rules_are_given_at_the_command_line_in_words(run: Run) -> None:
    rule = "+gate.floors={mrr: 1, precision@10: 0}"
    out, _ = run("compare", "baseline=good", "candidate=good", "gate=none", rule, code=1)
    assert "good (2): RR is" in out
    assert "below 1" in out


def test_reports_are_written_and_as_json_printed(run: Run, here: Path) -> None:
    out, err = run("compare", "baseline=good", "candidate=[bad,good]", "output=new/folder", "--json", code=1)
    content = orjson.loads(out)
    assert content["gate"]["passed"] is False
    assert [system["source"] for system in content["systems"]] == ["good", "bad", "good"]
    files = {file.name: file.read_text() for file in (here / "new" / "folder").iterdir()}
    assert files.keys() == {"comparison.md", "comparison.json", "comparison.html"}
    assert orjson.loads(files["comparison.json"]) == content
    assert "written: new/folder/comparison.md" in err


def test_many_candidates_are_shown_in_one_table(run: Run, here: Path) -> None:
    names = [f"c{i}" for i in range(11)]
    for name in names:
        save_record(degraded(result(name)), here / name)
    out, _ = run("compare", "baseline=good", f"candidate=[{','.join(names[:10])}]", "gate=none")
    assert "Largest losses of c9" in out
    out, _ = run("compare", "baseline=good", f"candidate=[{','.join(names)}]", "gate=none")
    table = out.partition("nDCG@10 minus that of good\n")[2].splitlines()[2:13]
    assert [line.split()[:2] for line in table] == [[name, "-0.2000"] for name in names]
    assert "Largest losses" not in out
    assert "output=FOLDER writes a report" in out


def test_reports_are_compared_by_search_type(run: Run, here: Path) -> None:
    reports(here)
    out, _ = run("compare", "baseline=several.json@bm25", "candidate=several.json", "--json")
    assert [system["source"] for system in orjson.loads(out)["systems"]] == ["several.json@bm25", "several.json@vector"]
    run("compare", "baseline=single.json", "candidate=several.json@vector")
    _, err = run("compare", "baseline=several.json", "candidate=single.json", code=2)
    assert "choose one: baseline=several.json@bm25, baseline=several.json@vector" in err
    _, err = run("compare", "baseline=several.json@bm52", "candidate=single.json", code=2)
    assert "no such search type; did you mean bm25?" in err


def test_a_report_of_nothing_passes_no_gate(run: Run, here: Path) -> None:
    reports(here)
    (here / "nothing.json").write_text('{"run_id": "r", "config": {"top_k_values": [1]}, "results_by_search_type": {}}')
    for one, other in (("single", "nothing"), ("nothing", "single")):
        _, err = run("compare", f"baseline={one}.json", f"candidate={other}.json", code=2)
        assert "nothing.json: the report has no results for any search type" in err


def test_different_datasets_are_refused_with_exit_code_2(run: Run, here: Path) -> None:
    reports(here)
    _, err = run("compare", "baseline=good", "candidate=single.json", code=2)
    assert "measured on different datasets" in err
    assert "differ" in err
    other = result("other")
    save_record(
        replace(other, dataset=replace(other.dataset, fingerprint="0" * 32, corpus_fingerprint="0")), here / "other"
    )
    _, err = run("compare", "baseline=good", "candidate=other", code=2)
    assert "their documents differ" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["candidate=good"], "baseline: is required; set baseline=RUN"),
        (["baseline=good"], "candidate: is required"),
        (["baseline=good", "candidate=null"], "candidate: is required"),
        (["baseline=good", "candidate=gone.json"], "gone.json: no such file; name a file, an MLflow run id"),
        (["baseline=good", "candidate=abcdef01"], "abcdef01: no such file, and no run in"),
        (["baseline=baseline:main", "candidate=good"], "no such baseline in baselines; create one: "),
        (["baseline=good", "candidate=good@bm25"], "a search type can be chosen only in a report with several"),
        (["baseline=good", "candidate=bad,good"], "write a list as 'candidate=[bad,good]'"),
        (["baseline=good", "candidate=bad", "gate=strict"], "no such choice; choose default or none"),
        (["baseline=good", "candidate=bad", "+gate.floors={mrrr: 1}"], "unknown measure 'mrrr'; did you mean"),
        (["baseline=good", "candidate=bad", "gate.floors={mrr: 1}"], "write '+gate.floors={mrr: 1}'"),
        (["baseline=good", "candidate=bad", "gate.floor={mrr: 1}"], "no such setting; did you mean gate.floors?"),
        (["baseline=good", "candidate=bad", "statistics.test=chi"], "statistics.test=chi: should be 'permutation'"),
        (["baseline=good", "candidate=bad", "compare.primary=P@7"], "good has no P@7"),
        (["baseline=good", "candidate=bad", "compare.primary=Judged@10"], "Judged@10: systems cannot be ranked"),
        (["baseline=good", "candidate=bad", "compare.primary=bla"], "compare.primary=bla: unknown measure 'bla'"),
        (["baseline=good", "candidate=bad", "metrics.test=t"], "metrics.test: no such setting; did you mean stat"),
        (["baseline=good", "candidate=bad", "+gate.floors={mrr: 85}"], ("gate.floors.RR=85: should be from "
                                                                       "0 to 1, the range of the measure; did you")),
        (["baseline=good", "candidate=bad", "output=good/result.json"], "output=good/result.json: expected a folder"),
        (["baseline=good", "candidate=empty"], "expected a result record"),
        (["baseline=good", "candidate=broken.json"], "expected a record or a report"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_in_one_line(run: Run, here: Path, arguments: list[str], said: str) -> None:
    (here / "empty").mkdir()
    (here / "broken.json").write_text("{")
    _, err = run("compare", *arguments, code=2)
    assert said in err
    assert len(err.splitlines()) == 1


def test_whatever_is_wrong_with_an_input_is_a_mistake(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*_: object) -> list[Named]:
        raise KeyError("dataset")

    monkeypatch.setattr("runner.commands.compare.results_called", damaged)
    _, err = run("compare", "baseline=good", "candidate=bad", code=2)
    assert "baseline=good: cannot be read (KeyError: 'dataset')" in err
    assert len(err.splitlines()) == 1


def test_a_crash_is_not_a_violation_and_prints_its_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object, **__: object) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setattr("runner.commands.compare.check_gate", crash)
    _, err = run("compare", "baseline=good", "candidate=bad", code=3)
    assert err.startswith("Traceback")
    assert err.endswith("RuntimeError: no luck\n")


def test_runs_are_called_by_how_their_ids_begin(run: Run, tracking: Tracking) -> None:
    good, bad = Tracker(tracking).log([Finished(result("good"), {}), Finished(degraded(result("bad")), {})])
    out, _ = run("compare", f"baseline={good.id[:8]}", f"candidate={bad.id.upper()}", "--json", code=1)
    assert [system["source"] for system in orjson.loads(out)["systems"]] == [f"run {good.id}", f"run {bad.id}"]
    assert orjson.loads(out)["agreement"]


def test_a_sweep_stands_for_its_best(run: Run, tracking: Tracking, here: Path) -> None:
    tracker, sweep = Tracker(tracking), Sweep("abc", "a sweep", {"k1": "1, 2"}, 2, this_time())
    best, _ = tracker.log([Finished(result("k1=1"), {}), Finished(degraded(result("k1=2")), {})], sweep)
    parent = tracker.start_sweep(sweep)
    _, err = run("compare", "baseline=good", f"candidate={parent.id}", code=2)
    assert "is not recorded; choose one: " in err
    assert f"{best.id[:8]} (k1=1)" in err
    tracker.finish_sweep(sweep, result("k1=1"), {}, "FINISHED")
    out, _ = run("compare", "baseline=good", f"candidate={parent.id}", "--json")
    assert orjson.loads(out)["systems"][1]["source"] == f"run {best.id}, the best of sweep {parent.id}"


def test_results_of_a_sweep_are_corrected_for_all_pairs_of_its_combinations(run: Run, tracking: Tracking) -> None:
    tracker, sweep = Tracker(tracking), Sweep("abc", "a sweep", {"k1": "1, 2, 3, 4"}, 4, this_time())
    results = [result(f"k1={seed}", seed=seed) for seed in range(1, 5)]
    runs = tracker.log([Finished(one, {}) for one in results], sweep)
    parent = tracker.finish_sweep(sweep, results[0], {}, "FINISHED")
    board = build_leaderboard(results, "nDCG@10", statistics=Statistics(permutations=500))
    best, rival = (runs[row.position].id for row in board.rows[:2])
    words = (f"baseline={best}", f"candidate={rival}", f"compare.among={parent.id}", "gate=none", "--json")
    content = orjson.loads(run("compare", *words)[0])
    (_, own) = content["measures"]["nDCG@10"]["systems"].values()
    assert own["corrected"] == pytest.approx(board.rows[1].difference.corrected)
    assert content["tests"]["primary"] == 6


def end_at(tracking: Tracking, moments: dict[str, int]) -> None:
    """Set when runs ended, in milliseconds."""
    file = tracking.sqlite_file()
    assert file is not None
    with closing(sqlite3.connect(file)) as database, database:
        for run_id, moment in moments.items():
            database.execute("update runs set end_time = ?, start_time = ? where run_uuid = ?", (moment, 0, run_id))


def test_the_latest_finished_run_of_the_experiment_is_a_candidate(run: Run, tracking: Tracking) -> None:
    old, new = Tracker(tracking).log([Finished(result("old"), {}), Finished(result("new", seed=3), {})])
    (other,) = Tracker(replace(tracking, experiment="other")).log([Finished(degraded(result("other")), {})])
    end_at(tracking, {old.id: 1, new.id: 2, other.id: 3})
    out, err = run("compare", "baseline=good", "candidate=latest", "gate=none", "--json")
    assert orjson.loads(out)["systems"][1]["source"] == f"run {new.id}"
    assert err == f"candidate=latest: run {new.id} (new)\n"
    out, _ = run("compare", "baseline=good", "candidate=latest", "tracking.experiment=other", "--json", code=1)
    assert orjson.loads(out)["systems"][1]["source"] == f"run {other.id}"
    end_at(tracking, {old.id: 4})
    out, _ = run("promote", "run=latest", "name=main")
    assert "baselines/main: old, nDCG@10" in out


def test_the_latest_run_is_a_sweep_rather_than_one_of_its_combinations(run: Run, tracking: Tracking) -> None:
    tracker, sweep = Tracker(tracking), Sweep("abc", "a sweep", {"k1": "1, 2"}, 2, this_time())
    of_best = result("k1=1", seed=3)
    best, worse = tracker.log([Finished(of_best, {}), Finished(degraded(result("k1=2")), {})], sweep)
    parent = tracker.finish_sweep(sweep, of_best, {}, "FINISHED")
    end_at(tracking, {best.id: 1, worse.id: 3, parent.id: 2})
    out, _ = run("compare", "baseline=good", "candidate=latest", "gate=none", "--json")
    assert orjson.loads(out)["systems"][1]["source"] == f"run {best.id}, the best of sweep {parent.id}"


def test_a_later_run_that_failed_is_mentioned(run: Run, tracking: Tracking) -> None:
    new = Finished(result("new", seed=3), {})
    finished, failed = Tracker(tracking).log([new, Failed("k1=2", {}, "OSError: no", "tr")])
    end_at(tracking, {finished.id: 1, failed.id: 2})
    _, err = run("compare", "baseline=good", "candidate=latest", "gate=none")
    assert f"run {finished.id} (new); the later run {failed.id} (k1=2) is FAILED" in err


def test_the_latest_run_is_refused_if_there_is_none_or_it_is_the_baseline(run: Run, tracking: Tracking) -> None:
    _, err = run("compare", "baseline=good", "candidate=latest", "tracking.experiment=ci", code=2)
    assert "latest: no finished run in experiment ci of sqlite:" in err
    assert "evaluate first, or set tracking.experiment=NAME" in err
    (failed,) = Tracker(tracking).log([Failed("k1=2", {}, "OSError: no", "tr")])
    _, err = run("compare", "baseline=good", "candidate=latest", code=2)
    assert f"the newest one, {failed.id[:8]} (k1=2), is FAILED: name it to take what it has" in err
    (logged,) = Tracker(tracking).log([Finished(result("old"), {})])
    run("promote", f"run={logged.id}", "name=main")
    for baseline in (logged.id, "baseline:main"):
        _, err = run("compare", f"baseline={baseline}", "candidate=latest", code=2)
        assert f"candidate=latest: this run is the baseline itself (run {logged.id}); evaluate a candidate first" in err


def test_a_run_that_failed_has_no_result(run: Run, tracking: Tracking) -> None:
    (failed,) = Tracker(tracking).log([Failed("k1=2", {}, "RuntimeError: no luck", "tr")])
    _, err = run("compare", "baseline=good", f"candidate={failed.id}", code=2)
    assert f"run {failed.id} (k1=2) is FAILED and has no result" in err


def test_a_beginning_that_several_ids_have_is_not_enough(
    run: Run, tracking: Tracking, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged = Tracker(tracking).log([Finished(result(f"r{i}"), {}, trec=False) for i in range(3)])
    every = [found for one in logged for found in Runs(tracking).like(one.id)]
    monkeypatch.setattr(Runs, "like", lambda runs, beginning: every)
    _, err = run("compare", "baseline=good", "candidate=abcd", code=2)
    assert "3 runs have ids that start with this; choose one: " in err
    assert f"{logged[0].id[:8]} (r0)" in err


def test_another_database_or_server_is_read_through_mlflow(tracking: Tracking, here: Path) -> None:
    tracker, sweep = Tracker(tracking), Sweep("abc", "a sweep", {"k1": "1"}, 1, this_time())
    (logged,) = tracker.log([Finished(result("k1=1"), {})], sweep)
    parent = tracker.finish_sweep(sweep, result("k1=1"), {}, "FINISHED")
    elsewhere = Runs(replace(tracking, uri=tracking.uri.replace("sqlite:", "sqlite+pysqlite:")))
    (sweep_run,) = elsewhere.like(parent.id[:8])
    assert (sweep_run.kind, sweep_run.best) == ("sweep", "k1=1")
    assert elsewhere.of_sweep(sweep_run) == Runs(tracking).of_sweep(sweep_run)
    assert [run.id for run in elsewhere.list_ended()] == [run.id for run in Runs(tracking).list_ended()] == [parent.id]
    (found,) = elsewhere.like(logged.id)
    fetched = elsewhere.record(replace(found, artifacts="mlflow-artifacts:/elsewhere"))
    assert fetched.means == pytest.approx(dict(result("k1=1").means))
    assert fetched.hits is not None


@pytest.mark.parametrize(
    ("value", "overrides", "words"),
    [
        ("abc", [], ["abc"]),
        (float("inf"), ["baseline=12e4567"], ["12e4567"]),
        (123456, ["candidate=[1]", "baseline=123456"], ["123456"]),
        (["a", 12], ["baseline=[a, 12]"], ["a", "12"]),
        (["a b", "c"], [], ["a b", "c"]),
    ],
)
def test_an_id_is_as_it_was_typed_whatever_it_looks_like(value: object, overrides: list[str], words: list[str]) -> None:
    assert as_typed(value, "baseline", overrides) == words


@pytest.mark.parametrize("value", ["???", None, "", []])
def test_a_setting_without_words_is_required(value: object) -> None:
    with pytest.raises(ConfigError, match="baseline: is required"):
        as_typed(value, "baseline", [])


def test_a_baseline_is_promoted_with_who_when_and_from_where(run: Run, here: Path, tracking: Tracking) -> None:
    (logged,) = Tracker(tracking).log([Finished(result("good"), {})])
    out, _ = run("promote", f"run={logged.id[:10]}", "name=main", "promote.by=Ada")
    assert "baselines/main: good, nDCG@10" in out
    promotion = orjson.loads((here / "baselines" / "main" / "promotion.json").read_bytes())
    assert promotion["by"] == "Ada"
    assert promotion["source"] == f"run {logged.id}"
    assert promotion["at"].endswith("+00:00")
    assert (promotion["low"], promotion["high"]) == pytest.approx(result("good").intervals["nDCG@10"])
    kept = load_record(here / "baselines" / "main")
    assert kept.means == pytest.approx(dict(result("good").means))
    assert kept.hits is not None
    assert kept.hits.rankings.depth == 10
    out, _ = run("compare", "baseline=baseline:main", "candidate=bad", "--json", code=1)
    assert orjson.loads(out)["systems"][0]["source"] == "baseline main"


def test_a_baseline_with_too_few_queries_for_a_gate_is_announced(run: Run, here: Path) -> None:
    for name, queries, expected in (
        ("tiny", 5, "with 5 queries, no drop can be significant (at least 6 are needed), so a gate never fails a drop"),
        ("small", 16, "with so few queries of a type (at least 6 are needed): semantic (5), wide (5)"),
        ("enough", 18, ""),
    ):
        save_record(result(name, queries=queries), here / name)
        _, err = run("promote", f"run={name}", f"name={name}")
        assert ("no drop can be significant" in err) == bool(expected)
        assert expected in " ".join(err.split())


def test_a_baseline_is_replaced_only_when_that_is_said(run: Run, here: Path) -> None:
    run("promote", "run=good", "name=main", "promote.by=Ada")
    _, err = run("promote", "run=bad", "name=main", code=2)
    assert "already a baseline, from good, promoted by Ada on" in err
    assert load_record(here / "baselines" / "main").name == "good"
    run("promote", "run=bad", "name=main", "promote.replace=true")
    assert load_record(here / "baselines" / "main").name == "bad"
    assert [folder.name for folder in (here / "baselines").iterdir()] == ["main"]


def test_a_baseline_records_what_it_replaced(run: Run, here: Path) -> None:
    for name in ("good", "bad", "good"):
        run("promote", f"run={name}", "name=main", "promote.replace=true")
    history = load_promotions(here / "baselines" / "main")
    assert [promotion.run for promotion in history] == ["good", "bad", "good"]
    means = [load_record(here / name).means["nDCG@10"] for name in ("good", "bad", "good")]
    assert [promotion.mean for promotion in history] == pytest.approx(means)
    assert means[0] != means[1]
    assert not any(promotion.earlier for promotion in history)


def test_a_promotion_that_fails_keeps_the_baseline(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("promote", "run=good", "name=main")
    rename = Path.rename

    def fail(path: Path, target: Path) -> Path:
        if path.name == ".main.new":
            raise PermissionError(13, "Permission denied")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail)
    _, err = run("promote", "run=bad", "name=main", "promote.replace=true", code=2)
    assert "cannot be written (Permission denied)" in err
    assert load_record(here / "baselines" / "main").name == "good"


@pytest.mark.parametrize("promotion", ["{", "[]", ""])
def test_a_damaged_promotion_is_in_nobodys_way(run: Run, here: Path, promotion: str) -> None:
    run("promote", "run=good", "name=main")
    (here / "baselines" / "main" / "promotion.json").write_text(promotion)
    _, err = run("promote", "run=bad", "name=main", code=2)
    assert "name=main: already a baseline; choose another name, or set promote.replace=true" in err
    run("promote", "run=bad", "name=main", "promote.replace=true")
    assert load_record(here / "baselines" / "main").name == "bad"


def test_a_report_can_be_a_baseline(run: Run, here: Path) -> None:
    reports(here)
    run("promote", "run=several.json@vector", "name=vector-1.0", "baselines=kept")
    run("compare", "baseline=baseline:vector-1.0", "candidate=single.json", "baselines=kept")
    _, err = run("compare", "baseline=baseline:vector", "candidate=single.json", "baselines=kept", code=2)
    assert "did you mean vector-1.0?" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run=good"], "name: is required"),
        (["name=main"], "run: is required"),
        (["run=good", "name=../main"], "name=../main: should contain only"),
        (["run=several.json", "name=main"], "choose one: run=several.json@bm25, run=several.json@vector"),
        (["run=good", "name=main", "baselines=good/result.json"], "cannot be written"),
        (["run=good", "name=main", "promote.depth=-1"], "promote.depth=-1"),
    ],
)
def test_a_mistake_in_promoting_is_reported_in_one_line(run: Run, here: Path, arguments: list[str], said: str) -> None:
    reports(here)
    _, err = run("promote", *arguments, code=2)
    assert said in err
    assert len(err.splitlines()) == 1


def test_the_help_of_each_verb_shows_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("compare", "promote"):
        assert main([verb, "--help"]) == 0
        assert f"python -m runner {verb} " in capsys.readouterr().out
