"""Plans the calls of a sweep to models behind APIs, and their cost, before any call is made.

Token counts come from earlier calls in the ledger; without such calls they are estimates or upper bounds. Texts to
embed are known in advance, so with the model's tokenizer their price is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from retrievers.base import iter_parts
from retrievers.capabilities import read_declaration
from retrievers.llm.model_calls import iter_model_calls
from runner.datasets.dataset import Dataset
from runner.datasets.own_documents import leave_room
from runner.evaluation.experiment import Experiment
from runner.evaluation.grading import Grading
from runner.llm.api_model import ApiModel
from runner.llm.client import BYTES_PER_TOKEN, LLM, TEMPLATE_TOKENS
from runner.llm.embedding import PURPOSE, ApiEncoder
from runner.llm.ledger import NANO, open_ledger
from runner.sweep.work import PlannedCalls


@dataclass(frozen=True)
class _Calls:
    """Calls of a model for one purpose and their input tokens: an upper bound, or an estimate if not `bounded`."""

    llm: object
    purpose: str
    n: int
    tokens_in: float
    bounded: bool = True
    units: int = 0


class _Embeddings:
    """The texts still to be embedded by encoders behind APIs; each text counts once for all experiments."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str, str, bool]] = set()
        self._known: set[tuple[str, str]] = set()
        self._planned: dict[tuple[str, str], tuple[ApiEncoder, int, int, int]] = {}

    def add(self, settings: object, dataset: Dataset) -> None:
        """Add the texts that a retriever embeds for a search: queries and, unless a service stores them, documents."""
        for encoder, reads_documents in _iter_encoders(settings):
            same = (repr(encoder), encoder.ledger, dataset.fingerprint, reads_documents)
            if same in self._seen:
                continue
            self._seen.add(same)
            lists = [encoder.list_texts(dataset.queries.texts, "query")]
            if reads_documents:
                lists.insert(0, encoder.list_texts(list(dataset.corpus.contents()), "document"))
            for texts in lists:
                wanted = {text.key: text for text in texts if text and (encoder.ledger, text.key) not in self._known}
                self._known.update((encoder.ledger, key) for key in wanted)
                missing = list(wanted)
                if missing and Path(encoder.ledger).exists():
                    missing = open_ledger(encoder.ledger).find_missing(missing)
                if not missing:
                    continue
                sent = [wanted[key] for key in missing]
                which = (repr(encoder), encoder.ledger)
                _, calls, tokens, size = self._planned.get(which, (encoder, 0, 0, 0))
                calls += sum(1 for _ in encoder.split_batches(sent))
                tokens += sum(text.tokens for text in sent)
                size += sum(len(text.text.encode()) for text in sent)
                self._planned[which] = encoder, calls, tokens, size

    def sum(self) -> Iterator[PlannedCalls]:
        """Yield the calls of each encoder: exact with a tokenizer, else estimated from earlier calls, else at most."""
        for encoder, calls, tokens, size in self._planned.values():
            ratio = None
            if encoder.tokenizer is None and Path(encoder.ledger).exists():
                ratio = open_ledger(encoder.ledger).tokens_per_byte(encoder.host, encoder.model)
            counted = tokens if ratio is None else round(size * ratio)
            cost = encoder.nanos((counted, 0)) / NANO if encoder.has_prices else None
            most = encoder.tokenizer is None and ratio is None
            rough = ratio is not None
            yield PlannedCalls(PURPOSE, encoder.model, calls, counted, None, cost, rough, most, encoder.price_settings)


def _iter_encoders(settings: object, reads_documents: bool = True) -> Iterator[tuple[ApiEncoder, bool]]:
    """Yield the encoders behind APIs within settings, and whether each embeds documents, which services have done."""
    if isinstance(settings, ApiEncoder):
        yield settings, reads_documents
        return
    own = not read_declaration(settings).live
    for part in iter_parts(settings):
        yield from _iter_encoders(part, reads_documents and own)


def estimate_calls(experiments: Iterable[tuple[Experiment, Dataset, bool]]) -> list[PlannedCalls]:
    """Return the calls of each model for each purpose, without retries.

    `experiments` has each experiment with its dataset and whether its search is still to do. A search that several
    experiments share counts once.
    """
    groups: dict[tuple[str, str], list[_Calls]] = {}
    embeddings = _Embeddings()
    searched: set[tuple[str, str]] = set()
    for experiment, dataset, to_search in experiments:
        planned: list[_Calls] = []
        retriever, _ = leave_room(experiment.retriever, dataset, experiment.metrics.depth)
        same = (repr(retriever), dataset.fingerprint)
        if to_search and same not in searched:
            searched.add(same)
            planned += _plan_search(retriever, dataset)
            embeddings.add(retriever, dataset)
        if experiment.grading is not None:
            planned.append(_plan_grading(experiment.grading, dataset))
        for calls in planned:
            groups.setdefault((calls.purpose, repr(calls.llm)), []).append(calls)
    return [*embeddings.sum(), *(_sum_calls(purpose, group) for (purpose, _), group in groups.items())]


def _plan_search(settings: object, dataset: Dataset) -> Iterator[_Calls]:
    """Yield the calls of a search; its tokens are at most the bytes of the prompts plus `max_tokens` per reply read."""
    for planned in iter_model_calls(settings, dataset.corpus, dataset.queries.texts):
        reply = planned.llm.max_tokens if isinstance(planned.llm, LLM) else 0
        tokens = planned.calls * TEMPLATE_TOKENS + planned.prompt_bytes + planned.replies_read * reply
        yield _Calls(planned.llm, planned.purpose, planned.calls, tokens, units=planned.units)


def _plan_grading(grading: Grading, dataset: Dataset) -> _Calls:
    """Return the calls of a grading, each with documents of average length."""
    n = len(dataset.queries)
    document = sum(map(len, dataset.corpus.contents())) / max(len(dataset.corpus), 1)
    question = sum(map(len, (*dataset.queries.texts, *grading.answers(dataset.queries)))) / max(n, 1)
    shown = len(grading.template.text) + question + min(grading.k, len(dataset.corpus)) * document
    calls = n * grading.repeats
    return _Calls(grading.llm, "grade", calls, calls * (TEMPLATE_TOKENS + shown / BYTES_PER_TOKEN), bounded=False)


def _sum_calls(purpose: str, group: list[_Calls]) -> PlannedCalls:
    n, llm = sum(calls.n for calls in group), group[0].llm
    if not isinstance(llm, ApiModel):  # a plug-in, whose tokens and prices are unknown
        return PlannedCalls(purpose, type(llm).__name__, n)
    known = open_ledger(llm.ledger).mean_tokens(purpose, llm.model) if Path(llm.ledger).exists() else None
    if known is not None:
        tokens_in, tokens_out = (round(n * tokens) for tokens in known)
    else:
        tokens_in = round(sum(calls.tokens_in for calls in group))
        tokens_out = n * llm.max_tokens if isinstance(llm, LLM) else 0
    units = sum(calls.units for calls in group)
    cost = llm.nanos((tokens_in, tokens_out), units) / NANO if llm.has_prices else None
    most = known is None and all(calls.bounded for calls in group)
    rough = known is None and not most
    written = tokens_out if isinstance(llm, LLM) else None
    return PlannedCalls(purpose, llm.model, n, tokens_in, written, cost, rough, most, llm.price_settings)
