"""Explanations of differences with known causes: terms, causes, what is evaluated, and the command."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson
import pytest

from benchmarks.simulations.explanation import (
    CAUSES,
    Version,
    add_queries,
    change_judgments,
    change_settings,
    check_draw,
    cover_effects,
    draw_version,
    evaluate,
    explain_versions,
    replace_documents,
    sample_queries,
)
from runner.__main__ import main
from runner.comparison.comparability import NotComparable
from runner.comparison.compare import TableStatistics
from runner.comparison.gate import Gate
from runner.config.consent import Consent
from runner.evaluation.bench import Bench
from runner.features.explain.explanation import ExplanationSettings, explain_difference
from runner.features.explain.report import tables
from runner.features.explain.report.page import explanation_page
from runner.features.explain.report.sections import explanation_markdown, iter_sections
from runner.features.explain.report.waterfall import build_waterfall
from runner.features.explain.term_gate import check_term
from runner.features.explain.terms import AFTER, BEFORE, Explanation
from runner.results.lookup import Named
from runner.statistics.corrections import holm
from runner.store.opening import open_store
from runner.store.settings import StoreSettings
from tests.pages.reading import check_markdown, check_page
from tests.results.test_re_evaluation import DATA, new_documents, old_documents, old_queries, write_data


@pytest.mark.parametrize("cause", CAUSES)
def test_terms_add_up_and_only_the_cause_has_an_effect(cause: str, tmp_path: Path) -> None:
    draw = check_draw(cause, 0, tmp_path)
    assert draw.error <= 1e-12
    changed = {"code": "settings" in cause, "documents": "documents" in cause, "judgments": "judgments" in cause}
    for (name, is_changed), effect in zip(changed.items(), draw.effects, strict=False):
        assert (effect != 0) == is_changed, name
    assert (draw.effects[3] != 0) == ("queries" in cause)
    assert draw.named


def test_an_effect_in_a_population_is_0_only_for_parts_that_did_not_change(tmp_path: Path) -> None:
    for cause, part in (("25 % of judgments changed", 2), ("20 % hard queries", 3)):
        for covers in cover_effects(cause, 0, tmp_path / cause, samples=2).values():
            assert covers.shape == (2, 4)
            assert covers[:, [i for i in range(4) if i != part]].all()


def test_samples_share_the_queries_that_both_versions_have() -> None:
    rng = np.random.default_rng(0)
    baseline = draw_version(rng, 60)
    first, second = sample_queries(rng, (baseline, add_queries(rng, baseline, 20)))
    assert (len(first.queries), len(second.queries)) == (40, 50)
    assert first.queries.items() <= second.queries.items()
    assert len(baseline.queries.keys() & second.queries.keys()) == 40


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[Version, Version, Explanation]:
    """Return two versions that differ in all factors, and their explanation."""
    rng = np.random.default_rng(5)
    baseline = draw_version(rng)
    planted = replace_documents(rng, baseline)
    changed = change_settings(rng, change_judgments(rng, add_queries(rng, planted, 10)))
    candidate = replace(changed, planted=planted.planted, queries={**changed.queries, "q001": "other words"})
    return baseline, candidate, explain_versions(baseline, candidate, tmp_path_factory.mktemp("store"), "t")


def test_four_factors_take_16_evaluations_and_add_up(everything: tuple[Version, Version, Explanation]) -> None:
    _, _, explanation = everything
    assert explanation.design.factors == ["settings", "documents", "judgments", "queries"]
    assert explanation.evaluations == 16
    for measure in explanation.measures:
        before, after = explanation.compute_means(measure)
        terms = explanation.list_terms(measure)
        assert sum(term.effect for term in terms) == pytest.approx(after - before, abs=1e-12)
        assert explanation.build_total(measure).effect == pytest.approx(after - before, abs=1e-12)
        for term in terms:
            assert term.least - 1e-12 <= term.effect <= term.most + 1e-12
            own = term.difference
            assert own.low <= term.effect <= own.high or (math.isnan(own.low) and own.differing < 4)
            assert own.queries == 0 or 0 < own.differing <= own.queries
            assert not term.parts
    values = explanation.values["nDCG@10"]
    np.testing.assert_array_equal(values[BEFORE], values[frozenset()])
    np.testing.assert_array_equal(values[AFTER], values[explanation.design.everything])


def test_causes_of_exploratory_measures_are_corrected_together(
    everything: tuple[Version, Version, Explanation],
) -> None:
    explanation = everything[2]
    primary, *others = explanation.measures
    assert len(others) == 2
    for family in ([primary], others):
        terms = [term.difference for measure in family for term in explanation.list_terms(measure)]
        totals = [explanation.build_total(measure).difference for measure in family]
        for tested in (terms, totals):
            expected = holm(np.array([own.p for own in tested]))
            np.testing.assert_allclose([own.corrected for own in tested], expected, atol=1e-12)
            assert {own.p < 1 for own in tested} == {True}
    gated = replace(explanation, rules=[others[0]], _terms={}, _totals={})
    assert [gated.find_family(measure) for measure in (primary, *others[:2])] == ["primary", "gate", "exploratory"]
    own = gated.build_total(others[0]).difference
    assert own.corrected == own.p < explanation.build_total(others[0]).difference.corrected


def test_causes_are_named(everything: tuple[Version, Version, Explanation]) -> None:
    baseline, candidate, explanation = everything
    causes = explanation.causes
    assert set(causes.documents["added"]) == set(candidate.planted)
    assert set(causes.documents["removed"]) == set(baseline.documents) - set(candidate.documents)
    assert causes.documents["changed"] == []
    assert {document for document, _ in causes.displacing} <= set(candidate.planted)
    changed = [q for q in baseline.queries if q != "q001" and baseline.qrels[q] != candidate.qrels[q]]
    assert {change.query for change in causes.judgments} == set(changed)
    kinds = {change.query: change.change for change in causes.queries}
    assert kinds == {"q001": "reworded", **{f"q{i:03d}": "added" for i in range(40, 50)}}
    for one in causes.displaced:
        assert one.unjudged == one.by, "nobody has judged the planted documents"
        assert one.without is None or one.without == one.after - len(one.by)


def test_every_list_of_causes_is_in_the_report(everything: tuple[Version, Version, Explanation]) -> None:
    _, _, explanation = everything
    titles = [section.title for section in iter_sections(explanation) if not section.is_empty]
    absent = {section.title for section in iter_sections(explanation)} - set(titles)
    assert absent == {"Changed gold", "Rules of the gate"}
    shares = explanation.list_shares("documents", "nDCG@10")
    effect = explanation.list_terms("nDCG@10")[1].effect
    assert sum(share for _, share in shares) == pytest.approx(effect, abs=1e-12)
    assert explanation.list_shares("queries", "nDCG@10") == []
    assert tables.build_shares_table(explanation).columns[-1].title == "adds to nDCG@10"


def test_every_section_is_in_markdown_and_on_the_page(everything: tuple[Version, Version, Explanation]) -> None:
    _, _, explanation = everything
    checks = check_term(Gate(drops={"primary": 0.0}), explanation, "documents")
    sections = [section for section in iter_sections(explanation, 20, checks) if section.title != "Changed gold"]
    check_markdown(sections, explanation_markdown(explanation, checks))
    sections = [section for section in iter_sections(explanation, 500, checks) if section.title != "Changed gold"]
    check_page(sections, explanation_page(explanation, checks))


def test_the_waterfall_leads_from_one_mean_to_the_other(everything: tuple[Version, Version, Explanation]) -> None:
    _, _, explanation = everything
    for measure in explanation.measures:
        plot = build_waterfall(explanation, measure)
        assert plot is not None
        first, *effects, last = plot.bars
        assert (first.end, last.end) == explanation.compute_means(measure) and first.is_mean and last.is_mean
        assert [bar.name for bar in effects] == [term.name for term in explanation.list_terms(measure)]
        level = first.end
        for bar, term in zip(effects, explanation.list_terms(measure), strict=True):
            low, high = bar.interval or (bar.end, bar.end)
            assert bar.start == level and not bar.is_mean
            assert (bar.interval is None) == math.isnan(term.difference.low)
            if bar.interval:
                assert (low, high) == (level + term.difference.low, level + term.difference.high)
            assert 0 < plot.place(low) <= plot.place(bar.end) <= plot.place(high) < 100
            level = bar.end
        assert level == pytest.approx(last.end, abs=1e-12)
    page, terms = explanation_page(explanation), explanation.list_terms(explanation.primary)
    assert page.count('class="interval"') == sum(not math.isnan(term.difference.low) for term in terms) == 3
    assert page.count('class="mean"') == 2


def test_a_gate_applies_to_the_chosen_term(everything: tuple[Version, Version, Explanation]) -> None:
    _, _, explanation = everything
    gate = Gate(drops={"primary": 0.0}, alpha=None, floors={"nDCG@10": 0.0})
    for i, term in enumerate(("code", "documents", "judgments", "queries")):
        floor, drop = check_term(gate, explanation, term)  # type: ignore[arg-type]  # one of the terms
        effect = explanation.list_terms("nDCG@10")[i].effect
        assert (drop.after, drop.verdict) == (effect, "fail" if effect < 0 else "pass")
        assert floor.verdict == "pass"
    (drop,) = check_term(Gate(drops={"primary": 0.0}), explanation, "queries")
    p_value = explanation.list_terms("nDCG@10")[3].difference.p
    assert drop.after >= 0 or drop.p == pytest.approx(p_value)


def test_gold_that_was_removed_changed_or_added_belongs_to_the_documents(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    baseline = draw_version(rng)
    (gone,), (edited,) = (baseline.qrels[query] for query in ("q001", "q002"))
    documents = {name: text for name, text in baseline.documents.items() if name != gone} | {edited: "nothing"}
    documents["fresh"] = baseline.queries["q001"]
    qrels = {q: {d: g for d, g in grades.items() if d != gone} or {"fresh": 1} for q, grades in baseline.qrels.items()}
    explanation = explain_versions(baseline, Version(documents, baseline.queries, qrels), tmp_path, "t")
    assert explanation.design.factors == ["documents"]
    changes = {(one.gold, one.change) for one in explanation.causes.gold}
    assert {(gone, "removed"), (edited, "changed"), ("fresh", "added")} == changes


@pytest.mark.parametrize("exact", [4, 1])
def test_settings_changed_together_are_split(exact: int, tmp_path: Path) -> None:
    """All orders of two settings are the same two orders, whether they are sampled or not."""
    bench = Bench(open_store(StoreSettings(str(tmp_path))))
    rng = np.random.default_rng(3)
    version = draw_version(rng)
    first = evaluate("baseline", version, bench)
    second = evaluate("candidate", replace(change_settings(rng, version), b=1.0), bench)
    options = ExplanationSettings(exact_settings=exact)
    named = Named(first, "first"), Named(second, "second")
    explanation = explain_difference(*named, TableStatistics(test="t"), options, lambda: bench, Consent())
    code, *others = explanation.list_terms("nDCG@10")
    assert [part.name.split()[0] for part in code.parts] == ["retriever.k1", "retriever.b"]
    assert sum(part.effect for part in code.parts) == pytest.approx(code.effect, abs=1e-12)
    assert len(explanation.design.orders) == (2 if exact == 1 else 0)
    assert not any(term.changed for term in others)
    values = explanation.values["nDCG@10"]
    mean = {names: column.mean() for names, column in values.items()}
    k1, b = (f"setting retriever.{name}" for name in ("k1", "b"))
    both, none = frozenset({k1, b}), frozenset[str]()
    assert explanation.evaluations == 4
    assert len(explanation.moved) > 9, "all documents have 30 words, so b has no influence"
    assert all(query.restored_by == [["retriever.k1"]] for query in explanation.moved)
    alone = (mean[frozenset({k1})] - mean[none] + mean[both] - mean[frozenset({b})]) / 2
    assert code.parts[0].effect == pytest.approx(alone, abs=1e-12)


def test_a_difference_that_is_not_reproduced_is_an_effect_of_the_code(tmp_path: Path) -> None:
    bench = Bench(open_store(StoreSettings(str(tmp_path))))
    rng = np.random.default_rng(4)
    version = draw_version(rng)
    first = evaluate("baseline", version, bench)
    old = replace(first, scores=first.scores * 0.5, environment={**first.environment, "code": {"retrievers": "old"}})
    second = evaluate("candidate", replace_documents(rng, version), bench)
    named = Named(old, "first"), Named(second, "second")
    explanation = explain_difference(*named, TableStatistics(test="t"), ExplanationSettings(), lambda: bench, Consent())
    code, documents, *_ = explanation.list_terms("nDCG@10")
    assert code.effect == pytest.approx(first.means["nDCG@10"] / 2, abs=1e-12)
    assert documents.effect == pytest.approx(second.means["nDCG@10"] - first.means["nDCG@10"], abs=1e-12)
    assert "The code of retrievers has changed since the baseline was recorded." in explanation.notes
    never = explanation.count_moved().never
    assert never == np.count_nonzero(first.of("nDCG@10") > 0), "no value is half of what today's code gives"
    assert f"Reverting all of them does not restore {never}: the code differs." in tables.describe_moved(explanation)


def test_a_query_that_moved_because_of_the_code_alone_has_no_other_cause(tmp_path: Path) -> None:
    bench = Bench(open_store(StoreSettings(str(tmp_path))))
    first = evaluate("baseline", draw_version(np.random.default_rng(4)), bench)
    second = replace(first, scores=first.scores * 0.5, environment={**first.environment, "code": {"retrievers": "new"}})
    named = Named(first, "first"), Named(second, "second")
    explanation = explain_difference(*named, TableStatistics(test="t"), ExplanationSettings(), lambda: bench, Consent())
    moved = np.count_nonzero(first.of("nDCG@10") > 0)
    assert (len(explanation.moved), explanation.count_moved().never) == (moved, moved)
    assert tables.describe_moved(explanation) == f"{moved} queries moved; only the code changed."
    assert {row[-1] for row in tables.build_moved_table(explanation).texts()} == {"nothing: the code differs"}


def test_equal_results_have_no_term(tmp_path: Path) -> None:
    version = draw_version(np.random.default_rng(0))
    explanation = explain_versions(version, version, tmp_path, "t")
    assert explanation.evaluations == 0
    assert not explanation.moved and not tables.describe_moved(explanation)
    assert tables.verdict(explanation).endswith("(+0.0000): nothing changed.")


def test_settings_that_cannot_be_evaluated_again_are_explained_by_the_records(tmp_path: Path) -> None:
    bench = Bench(open_store(StoreSettings(str(tmp_path))))
    version = draw_version(np.random.default_rng(3))
    first = replace(evaluate("baseline", version, bench), addresses={"retriever": "http://127.0.0.1:1"})
    second = evaluate("candidate", replace(version, k1=8.0, b=1.0), bench)
    named = Named(first, "first"), Named(second, "second")
    explanation = explain_difference(*named, TableStatistics(test="t"), ExplanationSettings(), lambda: bench, Consent())
    code, *_ = explanation.list_terms("nDCG@10")
    assert code.effect == pytest.approx(second.means["nDCG@10"] - first.means["nDCG@10"], abs=1e-12)
    assert not code.parts
    assert "measured on a live service (http://127.0.0.1:1)" in explanation.notes[0]
    assert tables.describe_changes(explanation) == ["Settings: retriever.k1, retriever.b 0.9, 0.4 to 8, 1."]


def test_settings_without_a_valid_mixture_are_explained_together(tmp_path: Path) -> None:
    bench = Bench(open_store(StoreSettings(str(tmp_path))))
    version = draw_version(np.random.default_rng(3))
    result = evaluate("baseline", version, bench)
    named = []
    for size, overlap in ((20, 10), (8, 2)):
        chunking = {"_target_": "runner.datasets.chunking.Tokens", "size": size, "overlap": overlap}
        config = {**result.config, "dataset": {**result.config["dataset"], "chunking": chunking}}
        named.append(Named(replace(result, config=config), f"{size} words"))
    explanation = explain_difference(
        named[0], named[1], TableStatistics(test="t"), ExplanationSettings(), lambda: bench, Consent()
    )
    assert "Settings are not split, because a mixture of them is invalid" in explanation.notes[0]
    (setting,) = explanation.design.settings
    assert str(setting) == "dataset.chunking.size, dataset.chunking.overlap 20, 10 to 8, 2"


def test_gold_in_spans_on_one_side_only_cannot_be_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(open_store(StoreSettings(str(tmp_path))))
    rng = np.random.default_rng(4)
    version = draw_version(rng)
    first, second = (evaluate(n, v, bench) for n, v in (("a", version), ("b", replace_documents(rng, version))))
    data = iter(
        [
            version.dataset,
            replace(version.dataset, judgments=replace(version.dataset.judgments, spans=cast("Any", "spans"))),
        ]
    )
    monkeypatch.setattr("runner.features.explain.explanation.load_data", lambda *_: next(data))
    named = Named(first, "first"), Named(second, "second")
    with pytest.raises(NotComparable, match="gold is spans in only one of the results"):
        explain_difference(*named, TableStatistics(), ExplanationSettings(), lambda: bench, Consent())


Run = Callable[..., tuple[str, str]]


@pytest.fixture(scope="module")
def project(migrated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two versions of data, a baseline on the first, and a candidate with another k1."""
    folder = tmp_path_factory.mktemp("explained")
    (folder / "mlruns").mkdir()
    shutil.copy(migrated, folder / "mlruns" / "mlflow.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_data(folder / "data", old_documents(), old_queries())
        assert main([*DATA]) == 0
        assert main(["promote", "run=latest", "name=old"]) == 0
        shutil.copytree(folder / "data", folder / "kept")
        write_data(folder / "data", new_documents(), old_queries())
        assert main([*DATA, "retriever.k1=100"]) == 0
        assert main(["promote", "run=latest", "name=new"]) == 0
    return folder


@pytest.fixture
def run(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a verb and returns what it prints, and what it says besides."""
    monkeypatch.chdir(project)

    def run(*arguments: str, code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        assert main([*arguments]) == code
        return tuple(capsys.readouterr())  # type: ignore[return-value]  # out and err

    return run


EXPLAIN = ("explain", "baseline=baseline:old", "candidate=baseline:new", "statistics.permutations=200")
MOVED = "+explain.baseline_data={path: kept}"


def test_the_command_explains_a_difference_and_gates_the_code(run: Run, project: Path) -> None:
    out, _ = run(*EXPLAIN, MOVED, "output=out", code=1)
    text = " ".join(out.split())
    assert "Settings: retriever.k1 0.9 to 100." in text
    assert "Documents: 1 document added (new), 1 document removed (x5), 1 document changed (d0)." in text
    assert "gate failed" in text
    content = orjson.loads((project / "out" / "explanation.json").read_bytes())
    of = content["measures"]["nDCG@10"]
    assert sum(term["effect"] for term in of["terms"].values()) == pytest.approx(of["total"]["effect"], abs=1e-12)
    assert of["terms"]["judgments"] | {"effect": 0, "changed": False} == of["terms"]["judgments"]
    assert content["evaluations"] == 4
    counts = {"moved": 29, "alone": {"retriever.k1": 28}, "several": 0, "together": 1, "never": 0}
    assert content["moved"]["counts"] == counts
    lost, fallen = content["moved"]["queries"][:2]
    assert lost == {
        "query": "q0",
        "values": [1, 0],
        "ranks": [1, None],
        "restored_by": [["retriever.k1", "documents"]],
        "causes": [],
    }
    assert (fallen["query"], fallen["ranks"], fallen["causes"]) == ("q1", [1, 2], ["retriever.k1"])
    assert (
        "29 queries moved. Reverting a single change restores 28: retriever.k1 28. "
        "Reverting several together restores 1 more."
    ) in text
    assert "q0 1 \N{RIGHTWARDS ARROW} none 1.000 \N{RIGHTWARDS ARROW} 0.000 retriever.k1 and documents together" in text
    assert "q1 1 \N{RIGHTWARDS ARROW} 2 1.000 \N{RIGHTWARDS ARROW} 0.631 retriever.k1 alone" in text
    for name in ("explanation.md", "explanation.html"):
        page = (project / "out" / name).read_text()
        assert "code and settings" in page
        assert "Rules of the gate" in page


def test_the_gate_can_apply_to_another_term(run: Run) -> None:
    out, _ = run(*EXPLAIN, MOVED, "explain.term=judgments", "--json")
    assert orjson.loads(out)["gate"]["passed"]
    run(*EXPLAIN, MOVED, "explain.term=documents", "gate.alpha=null", code=1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            [],
            r"baseline=baseline old: its data have changed since .* '\+explain.baseline_data=\{path: DIR\}'",
        ),
        (["+explain.baseline_data={path: nowhere}"], r"baseline=baseline old: its data cannot be loaded \(.*nowhere"),
        (["explain.primary=ERR@10"], "has no ERR@10"),
        (["explain.term=weather"], "explain.term"),
        (["candidate=[baseline:old,baseline:new]"], "candidate=baseline:old,baseline:new: matches several results"),
    ],
)
def test_a_mistake_is_named_in_one_line(words: list[str], message: str, run: Run) -> None:
    _, err = run(*EXPLAIN, *words, code=2)
    assert re.search(message, " ".join(err.split())), err


def test_a_report_without_a_fingerprint_cannot_be_explained(tmp_path: Path) -> None:
    bench = Bench(open_store(StoreSettings(str(tmp_path))))
    first = evaluate("baseline", draw_version(np.random.default_rng(0)), bench)
    report = replace(first, dataset=replace(first.dataset, fingerprint=""))
    named = Named(report, "report.json"), Named(first, "first")
    with pytest.raises(NotComparable, match=r"^baseline=report.json: a report does not identify its documents"):
        explain_difference(*named, TableStatistics(), ExplanationSettings(), lambda: bench, Consent())
