"""The rules of all records that archives hold.

They say what the docstrings of the records say: shapes of arrays, what indices point to, and the
ranges of numbers that sizes of other arrays follow from.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifactor._support.choices import Choice
from manifactor.cryoem.all_views.model import MotionModel
from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.place_features import PlaceFeatures
from manifactor.cryoem.all_views.principal import PrincipalVolumes
from manifactor.cryoem.all_views.slices import VolumeGrid
from manifactor.cryoem.all_views.view_map import ViewMap
from manifactor.cryoem.directions import SphereCells
from manifactor.factoring.factorization import DividedTerm, Factorization
from manifactor.factoring.factors.charts import Chart
from manifactor.factoring.factors.clouds import Cloud
from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.gradients.division import Split
from manifactor.factoring.judging.evidence import Evidence
from manifactor.factoring.sums.directions import Directions
from manifactor.factoring.sums.sheets import Sheet
from manifactor.factoring.sums.summands import Sum, Summand
from manifactor.factoring.triplets.maxcut import Cut
from manifactor.factoring.triplets.search import Triplets
from manifactor.runs.rules import (
    COMPLEX,
    TEXT,
    Array,
    Number,
    OneOf,
    RuleBook,
    Sizes,
    flags,
    indices,
    numbers,
    require,
    within,
)
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.forecast import Forecast
from manifactor.spectral.kernel import Affinity, Bandwidth
from manifactor.spectral.neighbors import NeighborGraph
from manifactor.spectral.parts import Part
from manifactor.spectral.pipeline import Walk
from manifactor.spectral.preparation import Preparation
from manifactor.spectral.search.choice import SEARCHES
from manifactor.spectral.spectrum import Spectrum

# Columns of places on each topology; any other shape has those of its embedding.
COLUMNS = {"interval": 1, "circle": 2}
TOPOLOGY = OneOf(("interval", "circle", "other"))
COUNT = Number(low=0, high=1e9)
POSITIVE = Number(above=0, high=1e300)
# Fields that live in memory only: a search tree, functions on a device, and settings, which the
# estimator's parameters give back.
UNSAVED = ("search", "resident", "settings")


@dataclass(frozen=True)
class FittedAttributes:
    """What an archive sets on an estimator, beside its parameters."""

    forecast_: Forecast
    timings_: dict[str, float]
    n_features_in_: int
    diffusion_: Diffusion | None = None
    factorization_: Factorization | None = None
    rows_: np.ndarray | None = None
    feature_names_in_: np.ndarray | None = None


RULES: dict[type, dict[str, Any]] = {
    FittedAttributes: {
        "diffusion_": within(samples="samples", columns="columns", given="given"),
        "factorization_": within(samples="samples", columns="columns", given="given"),
        "rows_": indices("samples"),
        "feature_names_in_": Array(("given",), TEXT),
    },
    Affinity: {
        "kernel": numbers("distinct", "distinct"),
        "pull": numbers("distinct"),
        "degree": numbers("distinct"),
        "step": POSITIVE,
        "local_scale": numbers("distinct"),
    },
    Bandwidth: {
        "choice": POSITIVE,
        "dimension": Number(low=0, high=1000),
        "candidates": numbers("candidates", filled=True),
        "slopes": numbers("candidates"),
    },
    Chart: {
        "functions": numbers("spectrum", "own", filled=True),
        "others": numbers("spectrum", "others"),
        "mean": numbers("others", "own"),
        "spread": numbers("others", "own", "own"),
        "floor": Number(),
    },
    Choice: {"value": within(given="given", columns="columns")},
    Cloud: {
        "stages": numbers("places", "own", filled=True),
        "dimension": Number(low=1, most="own"),
        # Of one neighbour there is no plane.
        "n_neighbors": Number(low=2, most="places"),
    },
    Cut: {"labels": indices("vertices")},
    Diffusion: {
        "samples": numbers("samples", "columns", filled=True),
        "graph": within(samples="samples", distinct="distinct"),
        "affinity": within(distinct="distinct"),
        "distinct": within(samples="distinct", functions="functions"),
        "parts": within(distinct="distinct"),
        "choices": within(given="given", columns="columns"),
        "max_functions": COUNT,
        "n_requested": COUNT,
    },
    Directions: {"mean": numbers("columns"), "axes": numbers("columns", "main")},
    DividedTerm: {
        "term": COUNT,
        "n_factors": Number(low=1, high=1000),
        "diffusion": within(functions="functions"),
    },
    Evidence: {"leakage": numbers("factors", "factors", finite=False)},
    Factor: {
        "functions": numbers("samples", "functions"),
        "eigenvalues": numbers("functions", filled=True),
        "topology": TOPOLOGY,
        "dimension": Number(low=1, high=1000),
        "embedding": numbers("samples", "columns", filled=True),
        "coordinate": numbers("samples"),
        "confidence": numbers("samples"),
        "coefficients": numbers(None, "functions"),
        "chart": within(spectrum="spectrum", own="own"),
        "cloud": within(own="own"),
        "ends": numbers(2),
    },
    Factorization: {
        "factors": within(samples="samples"),
        "diffusion": within(
            samples="samples", columns="columns", functions="functions", given="given"
        ),
        "triplets": within(functions="functions"),
        "sum": within(columns="columns"),
    },
    MotionModel: {
        "box": POSITIVE,
        "volumes": Array(("features", "grid"), COMPLEX),
        "views": within(motions="motions"),
        "consistency": numbers("motions", finite=False),
        "quantiles": numbers("motions", None, filled=True),
    },
    Motions: {"topologies": OneOf(tuple(COLUMNS))},
    NeighborGraph: {
        "distances": numbers("distinct", "distinct"),
        "bridges": indices(None, 2, below="distinct"),
        "distinct": indices("distinct", below="samples"),
        "inverse": indices("samples", below="distinct"),
        "components": indices("samples"),
        "method": OneOf((*SEARCHES, "cells", "custom", "precomputed")),
        "n_neighbors": Number(low=1, most="distinct"),
        "outliers": flags("samples"),
        "undrawn": flags("samples"),
    },
    Part: {
        "rows": indices("rows", below="distinct"),
        "affinity": within(distinct="rows"),
        "spectrum": within(samples="rows"),
    },
    PlaceFeatures: {
        "topologies": TOPOLOGY,
        "middles": numbers(None),
        "spreads": numbers(None),
        "squared": Number(low=0, high=10),
        "degree": Number(low=0, high=20),
        "harmonics": Number(low=0, high=20),
    },
    Preparation: {"mean": numbers("given"), "components": numbers("given", "columns")},
    PrincipalVolumes: {
        "volumes": Array((None, "grid"), COMPLEX),
        "coordinates": numbers("particles", "rank"),
        "covariance": numbers("particles", "rank", "rank"),
        "information": numbers("rank"),
        "agreement": numbers(None),
    },
    Sheet: {
        "topology": TOPOLOGY,
        "places": numbers("nodes", "columns", filled=True),
        "means": numbers("nodes", "main", filled=True),
        "tangents": numbers("nodes", "tangents", "main"),
        "steps": numbers("nodes", "tangents", "steps"),
    },
    Spectrum: {
        "eigenvalues": numbers("functions", filled=True),
        "functions": numbers("samples", "functions", filled=True),
        "weights": numbers("samples"),
        "residuals": numbers("functions", finite=False),
        "step": POSITIVE,
    },
    SphereCells: {"per_band": indices(None, least=1)},
    Split: {
        "n_blocks": Number(low=1, high=1e6),
        "q": numbers("values", finite=False),
        "noise": numbers("values", finite=False),
    },
    Sum: {"directions": within(columns="columns", main="main"), "summands": within(main="main")},
    Summand: {"sheet": within(main="main"), "start": numbers("main", "main")},
    Triplets: {
        "products": indices("triplets", below="functions"),
        "parts": indices("triplets", None, below="functions", least=-1),
        "similarity": numbers("triplets"),
    },
    ViewMap: {"counts": indices("cells"), "deviations": numbers("cells", "motions", finite=False)},
    VolumeGrid: {
        # A volume of 1,024 frequencies on each side has 10^9 of them.
        "cut": Number(above=0, high=250),
        "radius": Number(above=0, high=1),
        "padding": Number(low=1, high=4),
        "edge": Number(low=0, high=1),
    },
    Walk: {
        "graph": within(distinct="distinct"),
        "affinity": within(distinct="distinct"),
        "parts": within(distinct="distinct"),
        "spectrum": within(samples="distinct"),
    },
}


def _require_fitted(fitted: FittedAttributes, sizes: Sizes) -> None:
    found = fitted.diffusion_
    if fitted.factorization_ is not None:
        found = fitted.factorization_.diffusion
    if found is None:
        require(False, "the estimator was not fitted")
        return
    columns = sizes["columns"] if found.preparation is None else sizes["given"]
    known = {fitted.n_features_in_, columns, sizes.get("given", columns)}
    require(len(known) == 1, "the estimator has another number of columns")


def _require_factor(factor: Factor, sizes: Sizes) -> None:
    columns = factor.embedding.shape[1]
    expected = COLUMNS.get(factor.topology, sizes.get("own", columns))
    require(columns == expected, "Factor.embedding: has other columns than its shape")
    has_place = factor.topology in COLUMNS
    require(has_place == (factor.coordinate is not None), "Factor.coordinate: is amiss")
    placed_by_chart = factor.topology == "interval" and factor.chart is not None
    require(placed_by_chart == (factor.ends is not None), "Factor.ends: is amiss")
    if factor.topology == "circle":
        require(sizes.get("own", 2) >= 2, "Factor.chart: has no angle")


def _require_factorization(found: Factorization, sizes: Sizes) -> None:
    require(len(found.factors) > 0, "Factorization.factors: is empty")
    leakage = found.evidence.leakage
    require(len(leakage) == len(found.factors), "Evidence.leakage: has another size")
    spectra: list[int | None] = [sizes["functions"]] * len(found.factors)
    if found.sum is not None:
        spectra = _spectra_of_terms(found.sum, found.divided)
    require(len(spectra) == len(found.factors), "Factorization.factors: are too few")
    for factor, functions in zip(found.factors, spectra, strict=True):
        rows = None if factor.chart is None else len(factor.chart.functions)
        require(rows == functions, "Chart.functions: has another size")


def _spectra_of_terms(terms: Sum, divided: tuple[DividedTerm, ...]) -> list[int | None]:
    """Return how many functions each factor is read from; None where from none."""
    inside = {each.term: each for each in divided}
    require(set(inside) <= set(range(len(terms.summands))), "DividedTerm.term: is amiss")
    spectra: list[int | None] = []
    for term in range(len(terms.summands)):
        if term not in inside:
            spectra.append(None)
            continue
        own = inside[term]
        spectra += [len(own.diffusion.distinct.eigenvalues)] * own.n_factors
    return spectra


def _require_sheet(sheet: Sheet, sizes: Sizes) -> None:
    expected = COLUMNS.get(sheet.topology, sizes["columns"])
    require(sizes["columns"] == expected, "Sheet.places: has other columns")
    # On a circle, steps are of the angle.
    steps = 1 if sheet.topology == "circle" else expected
    require(sizes["steps"] == steps, "Sheet.steps: has other columns")


def _require_model(model: MotionModel, sizes: Sizes) -> None:
    topologies = model.motions.topologies
    require(len(topologies) == sizes["motions"], "MotionModel.motions: are too few")
    require(sizes["grid"] == model.grid.size, "MotionModel.volumes: has another size")
    cells = int(model.views.cells.per_band.sum())
    require(cells == len(model.views.counts), "ViewMap.counts: has another size")


def _require_terms(motions: Motions, sizes: Sizes) -> None:
    # Levels beyond the settings' own were never tried.
    most = motions.settings.max_level
    for term in motions.added:
        require(len(term) == len(motions.topologies), "Motions.added: is amiss")
        require(all(0 <= level <= most for level in term), "Motions.added: is amiss")


def _require_place_features(features: PlaceFeatures, sizes: Sizes) -> None:
    counts = {len(features.topologies), len(features.middles), len(features.spreads)}
    require(len(counts) == 1, "PlaceFeatures.middles: are too few")


BOOK = RuleBook(
    RULES,
    {
        FittedAttributes: _require_fitted,
        Factor: _require_factor,
        Factorization: _require_factorization,
        Sheet: _require_sheet,
        MotionModel: _require_model,
        Motions: _require_terms,
        PlaceFeatures: _require_place_features,
    },
    UNSAVED,
)
