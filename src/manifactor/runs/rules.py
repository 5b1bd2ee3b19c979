"""Rules that the fields of records must keep: types, sizes and ranges.

Sizes have names. A name stands for one size in all arrays of a record, and a rule `Within` says
under which names the sizes of a record are known inside of another. So an array that was cut, or an
index that points beyond another array, breaks a rule wherever it is.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from numbers import Real
from types import UnionType
from typing import Any, Protocol, Union, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp

from manifactor._support.parameters import Choice
from manifactor._support.values import bad_values
from manifactor.cryoem.all_views.model import MotionModel, ViewMap
from manifactor.cryoem.all_views.motions import MAX_LEVEL, Motions, PlaceFeatures
from manifactor.cryoem.all_views.principal import PrincipalVolumes
from manifactor.cryoem.all_views.slices import VolumeGrid
from manifactor.cryoem.directions import SphereCells
from manifactor.factoring.factorization import DividedTerm, Factorization
from manifactor.factoring.factors.charts import Chart, Cloud
from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.gradients.division import Split
from manifactor.factoring.judging.evidence import Evidence
from manifactor.factoring.sums.independence import Directions
from manifactor.factoring.sums.sheets import Sheet
from manifactor.factoring.sums.summands import Sum, Summand
from manifactor.factoring.triplets.maxcut import Cut
from manifactor.factoring.triplets.search import Triplets
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.forecast import Forecast
from manifactor.spectral.kernel import Affinity, Bandwidth
from manifactor.spectral.neighbors import SEARCHES, NeighborGraph
from manifactor.spectral.parts import Part
from manifactor.spectral.pipeline import Walk
from manifactor.spectral.preparation import Preparation
from manifactor.spectral.spectrum import Spectrum

Sizes = Mapping[str, int]
# A name, a number, or None for any size.
Size = str | int | None
# Letters of numpy's kinds of numbers.
FLOATS, COMPLEX, INDICES, FLAGS, TEXT = "f", "c", "iu", "b", "U"


class BrokenRule(ValueError):
    """A record that no computation has made."""


def require(holds: bool, problem: str) -> None:
    """Refuse what does not hold."""
    if not holds:
        raise BrokenRule(problem)


class Rule(Protocol):
    """What the value of a field must keep."""

    def sizes(self, value: Any, known: Sizes, book: "RuleBook") -> Sizes:
        """Return the known sizes and those of the value; refuse conflicts."""

    def require(self, value: Any, known: Sizes) -> None:
        """Refuse values out of range; all sizes of the record are known."""


@dataclass(frozen=True)
class RuleBook:
    """The rules of all records."""

    rules: Mapping[type, Mapping[str, Rule]]  # by record and field
    # What no rule of one field says: a function of a record and its sizes
    further: Mapping[type, Callable[[Any, Sizes], None]] = field(default_factory=dict)
    unsaved: Collection[str] = ()  # fields that are not checked

    def check(self, record: Any, known: Sizes | None = None) -> Sizes:
        """Refuse a record that breaks a rule, or holds one that does."""
        kind: Any = type(record)
        rules, found = self.rules.get(kind, {}), known or {}
        values = {
            each.name: getattr(record, each.name)
            for each in dataclasses.fields(record)
            if each.name not in self.unsaved
        }
        for name, value in values.items():
            with _named(kind, name):
                require(fits(value, _hints(kind)[name]), "has another type")
                found = rules.get(name, Within()).sizes(value, found, self)
        for name, rule in rules.items():
            with _named(kind, name):
                rule.require(values[name], found)
        if kind in self.further:
            self.further[kind](record, found)
        return found

    def check_all(self, value: Any) -> None:
        """Check all records in a value."""
        Within().sizes(value, {}, self)


@contextmanager
def _named(kind: type, name: str) -> Iterator[None]:
    """Begin the message of a broken rule with the field."""
    try:
        yield
    except BrokenRule as error:
        raise BrokenRule(f"{kind.__name__}.{name}: {error}") from error


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of the type that a field declares."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in inner)
    if origin is tuple:
        return isinstance(value, tuple) and all(fits(item, inner[0]) for item in value)
    if origin is not None:
        return isinstance(value, Mapping) and all(
            fits(key, inner[0]) and fits(item, inner[1]) for key, item in value.items()
        )
    if hint in (float, int):
        number = Real if hint is float else int
        return isinstance(value, number) and not isinstance(value, bool)
    return isinstance(value, hint)


@dataclass(frozen=True)
class Within:
    """Records in a record, also in tuples and dicts; other values may be anything."""

    # Names of sizes in these records, and what they are called outside
    names: Mapping[str, str] = field(default_factory=dict)

    def sizes(self, value: Any, known: Sizes, book: RuleBook) -> Sizes:
        """Check the records, and add sizes that only they know."""
        found = dict(known)
        for record in _records(value):
            inside = {
                name: found[outside] for name, outside in self.names.items() if outside in found
            }
            inner = book.check(record, inside)
            for name, outside in self.names.items():
                if name in inner:
                    found[outside] = inner[name]
        return found

    def require(self, value: Any, known: Sizes) -> None:
        """Do nothing: records were checked with their sizes."""


def within(**names: str) -> Within:
    """Return the rule of records whose sizes have these names outside."""
    return Within(names)


def _records(value: Any) -> Iterator[Any]:
    """Yield the records in a value."""
    if dataclasses.is_dataclass(value):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _records(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from _records(item)


@dataclass(frozen=True)
class Array:
    """An array, a sparse matrix, or a tuple of arrays; None passes."""

    shape: tuple[Size, ...]  # the size of each axis
    kinds: str = FLOATS  # letters of numpy's kinds of numbers
    below: str | None = None  # the size that indices must be below
    least: int = 0  # the smallest index
    finite: bool = True  # whether all numbers must be finite
    filled: bool = False  # whether it must have at least one entry

    def sizes(self, value: Any, known: Sizes, book: RuleBook) -> Sizes:
        """Compare the shape with known sizes, and add others."""
        found = dict(known)
        for array in _arrays(value):
            require(array.dtype.kind in self.kinds, f"holds {array.dtype}")
            require(array.dtype.isnative, "has foreign bytes")
            require(len(array.shape) == len(self.shape), f"has shape {array.shape}")
            for name, size in zip(self.shape, array.shape, strict=True):
                expected = found.setdefault(name, size) if isinstance(name, str) else name
                require(expected in (None, size), f"has shape {array.shape}")
        return found

    def require(self, value: Any, known: Sizes) -> None:
        """Refuse indices out of range, and numbers that are not finite."""
        for array in _arrays(value):
            entries = array.data if sp.issparse(array) else array
            require(bool(entries.size) or not self.filled, "is empty")
            if not entries.size:
                continue
            if self.kinds == INDICES:
                require(entries.min() >= self.least, "has indices below its first")
                high = np.inf if self.below is None else known[self.below]
                require(entries.max() < high, "has indices beyond its last")
            elif self.finite and self.kinds in FLOATS + COMPLEX:
                for part in (entries.real, entries.imag):
                    bad = bad_values(part, precision=np.float64)
                    require(bad is None, "is not finite")


def _arrays(value: Any) -> tuple:
    """Return the arrays of a field."""
    if value is None:
        return ()
    found = value if isinstance(value, tuple) else (value,)
    known = all(isinstance(each, np.ndarray) or sp.issparse(each) for each in found)
    require(known, "is no array")
    return found


def numbers(*shape: str | int | None, finite: bool = True, filled: bool = False) -> Array:
    """Return the rule of an array of floats."""
    return Array(shape, finite=finite, filled=filled)


def indices(*shape: str | int | None, below: str | None = None, least: int = 0) -> Array:
    """Return the rule of an array of whole numbers, from the least on."""
    return Array(shape, INDICES, below, least)


def flags(*shape: Size) -> Array:
    """Return the rule of an array of truth values."""
    return Array(shape, FLAGS)


@dataclass(frozen=True)
class Number:
    """A number, or a Choice of one, in [low, high] and greater than above; or None."""

    low: float = -np.inf
    high: float = np.inf
    above: float = -np.inf
    most: str | None = None  # A size that it must not exceed

    def sizes(self, value: Any, known: Sizes, book: RuleBook) -> Sizes:
        """Check the Choice; return the known sizes."""
        return Within().sizes(value, known, book)

    def require(self, value: Any, known: Sizes) -> None:
        """Refuse other numbers."""
        number = value.value if isinstance(value, Choice) else value
        if number is None:
            return
        require(fits(number, float), "is no number")
        high = self.high if self.most is None else known[self.most]
        inside = self.low <= number <= high and number > self.above
        require(inside, f"must not be {number}")


@dataclass(frozen=True)
class OneOf:
    """A word, a Choice of one, or a tuple of words."""

    words: tuple[str, ...]

    def sizes(self, value: Any, known: Sizes, book: RuleBook) -> Sizes:
        """Check the Choice; return the known sizes."""
        return Within().sizes(value, known, book)

    def require(self, value: Any, known: Sizes) -> None:
        """Refuse other words."""
        word = value.value if isinstance(value, Choice) else value
        words = word if isinstance(word, tuple) else (word,)
        require(all(each in self.words for each in words), f"must not be {word!r:.40}")


# The rules of all records that archives hold.
#
# They say what the docstrings of the records say: shapes of arrays, what indices point to, and the
# ranges of numbers that sizes of other arrays follow from.

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
    PlaceFeatures: {"topologies": TOPOLOGY, "middles": numbers(None), "spreads": numbers(None)},
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
    # Higher levels were never tried.
    for term in motions.added:
        require(len(term) == len(motions.topologies), "Motions.added: is amiss")
        require(all(0 <= level <= MAX_LEVEL for level in term), "Motions.added: is amiss")


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
