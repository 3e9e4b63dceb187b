"""What the table of a paper shows, in sentences: its marks, its tests, and what they assume."""

from __future__ import annotations

from runner.comparison.report.significance import in_words
from runner.features.table.paper_table import PaperTable
from runner.statistics.corrections import CORRECTIONS

_MARKS = {
    "signs": "+ and -: significantly better and worse than {}",
    "letters": "Letters: two systems of a column differ significantly if and only if they share no letter",
}


def describe_table(table: PaperTable, best: str = "Bold") -> list[str]:
    """Return the sentences of the caption: what is shown, what `best` and the marks mean, what is corrected."""
    statistics, measures = table.statistics, list(table.measures)
    listed = " and ".join([", ".join(measures[:-1]), measures[-1]] if measures[1:] else measures)
    is_corrected = CORRECTIONS[statistics.correction].depends_on_family
    sentences = [
        f"Mean {listed} by dataset, over {_count_queries(table)}.",
        f"{best}: the highest mean of the column, whether or not others differ significantly from it.",
        f"{_MARKS[table.marks].format(table.baseline or 'the highest mean of the column')} (differences paired by "
        f"query; {in_words(statistics.test, statistics.correction)}"
        f"{' for all pairs of systems in the column' if is_corrected else ''}; p < {statistics.alpha:g}).",
    ]
    if is_corrected and measures[1:]:
        together = f" and corrected for all {len(measures) - 1} on each dataset" if measures[2:] else ""
        sentences.append(
            f"{measures[0]} is the primary measure; the others are exploratory{together}. The command compare counts "
            "all measures on record, so its p-values may differ."
        )
    if is_corrected and len(table.datasets) > 1:
        sentences.append("Datasets are not corrected for one another.")
    lacking = [f"{system} on {', '.join(titles)}" for system, titles in table.list_missing().items()]
    if lacking:
        sentences.append(f"A dash: no result ({'; '.join(lacking)}).")
    if table.foreign:
        foreign = "; ".join(f"{table.systems[row]} on {table.datasets[column]}" for row, column in table.foreign)
        sentences.append(f"Scores were left out where no hit has an id of the dataset ({foreign}).")
    return sentences


def _count_queries(table: PaperTable) -> str:
    """Return how many queries the means of each dataset are over, a range where measures or systems differ."""
    counts: dict[str, set[int]] = {title: set() for title in table.datasets}
    for cell in table.list_cells():
        counts[cell.dataset].add(cell.queries)
    texts = {title: " to ".join(f"{n:,}" for n in sorted({min(of), max(of)})) for title, of in counts.items() if of}
    if len(texts) == 1:
        return f"{next(iter(texts.values()))} queries"
    return f"queries ({', '.join(f'{title}: {text}' for title, text in texts.items())})"


def describe_across(table: PaperTable) -> list[str]:
    """Return the sentences on the comparison across datasets and its assumptions; [] without such a comparison.

    If some systems cannot be part of it, because they lack a dataset, it says which.
    """
    lacking = list(table.list_missing())
    if not table.across:
        few = len(table.datasets) > 1 and lacking
        return ["No comparison across datasets, which needs two systems with results on all of them."] if few else []
    statistics, count = table.statistics, len(table.datasets)
    family = f"the comparisons with {table.baseline}" if table.baseline else "all pairs of systems"
    new = CORRECTIONS[statistics.correction].for_family()
    corrected = f"with {new.description}" + (f" for {family}" if new.depends_on_family else "")
    return [
        f"Mean difference from {table.baseline or 'the system with the highest mean'} over {count} datasets, which all "
        "have the same weight.",
        f"Same datasets: what to expect for new queries of these {count} datasets. The differences of queries are "
        f"tested within their datasets, {in_words(statistics.test, statistics.correction)}.",
        "New datasets: what to expect for datasets that are not in the table. Student's t is computed from the "
        f"{count} mean differences, {corrected}. It assumes that the datasets are a random sample of those of interest "
        "and that the mean differences are roughly normal. The interval is that of a single comparison.",
        "Won, tied and lost count datasets by their means; sig. better and sig. worse count the significant ones.",
        *([f"Left out, as they lack results on a dataset: {', '.join(lacking)}."] if lacking else []),
    ]
