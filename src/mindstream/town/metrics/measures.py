"""A town in numbers, one each: what ensembles compare."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.town.inspect.history import History
from mindstream.town.metrics.conduct import examine_conduct
from mindstream.town.metrics.counts import count_events
from mindstream.town.metrics.diffusion import trace_fact
from mindstream.town.metrics.fact import find_fact
from mindstream.town.metrics.relationships import trace_acquaintance


def measure(history: History, facts: Sequence[str] = ()) -> dict[str, float]:
    """Return what `town metrics` counts, and for each fact which share of the residents knows it.

    Raises:
        InputError: nobody began with a memory like a fact.
    """
    counts, conduct, people = count_events(history), examine_conduct(history), max(1, len(history.names))
    return {
        "talks a day": counts.talks_a_day,
        "reflections a day and resident": counts.reflections_a_day,
        "pairs that know each other": trace_acquaintance(history).density(history.step),
        "planned minutes that were kept": conduct.adherence,
        "acts where and when one may": conduct.believable_share,
    } | {f"“{fact}” is known to": len(trace_fact(history, find_fact(fact, history)).knowers) / people for fact in facts}
