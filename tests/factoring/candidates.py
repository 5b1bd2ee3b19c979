"""Candidates and facts that are made by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from manifactor.factorize import conclude, search, streams_of
from manifactor.judging.candidate import Candidate, Facts
from manifactor.judging.measures.density import Evenness
from manifactor.operators.operator import DiffusionSettings
from manifactor.samples import Samples
from manifactor.settings import FactoringSettings

from .places import interval


def graph_of(n_samples):
    """What candidates ask of a graph of distinct samples without outliers."""
    none = np.zeros(n_samples, dtype=bool)
    return SimpleNamespace(outliers=none, undrawn=none, distinct=np.arange(n_samples))


def facts_on(operator, settings=FactoringSettings(), **more):
    """Facts of an operator that was made by hand."""
    samples = operator.samples
    rng = more.pop("rng", np.random.default_rng(0))
    X = np.zeros((len(operator.graph.distinct), 1)) if samples is None else samples
    return Facts(
        operator=operator,
        n_asked=settings.n_asked,
        drawn=Samples(X, noise=more.pop("noise", None)),
        settings=settings,
        rng=rng,
        streams=streams_of(rng),
        search=search,
        conclude=conclude,
        **more,
    )


def factored(operator, settings=FactoringSettings(), **more):
    """The result of an operator that was made by hand."""
    facts = facts_on(operator, settings, **more)
    return conclude(facts, search(facts))


def even_facts(n_asked=None, **more):
    """Facts of even samples of a surface, which all models may be tried of."""
    everyone = graph_of(300)
    operator = SimpleNamespace(
        graph=everyone,
        preparation=None,
        metric=None,
        lagged=(),
        warned=(),
        path=None,
        points=None,
        samples=None,
    )
    operator.settings, operator.dimension = DiffusionSettings(), 2.0
    density = more.pop("density", Evenness(0.1, 2.0))
    facts = facts_on(operator, FactoringSettings(n_asked or "auto"), is_free=True, **more)
    facts.__dict__["density"] = density
    return facts


def candidate(facts, *tests, sense="geometry", n_factors=2, **more):
    """A candidate of intervals with the given tests."""
    places = np.random.default_rng(0).uniform(size=(n_factors, 300))
    made = Candidate(sense, sense, facts.operator, facts, factors=tuple(map(interval, places)))
    return replace(made, tests=tests, **more)
