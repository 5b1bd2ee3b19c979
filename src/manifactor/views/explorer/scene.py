"""A run as the page sees it: what to draw, what lies near a place, what is selected."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from manifactor._support.errors import one_line
from manifactor._support.values import ceil_div
from manifactor.estimators import ManifoldFactorizer
from manifactor.factors.factor import angle_matrix, owners
from manifactor.runs.places import Place, bin_labels, joint_cells
from manifactor.runs.run import Run, endings, selection
from manifactor.views import words
from manifactor.views.explorer.columns import (
    INNER_RADIUS,
    Column,
    about_factor,
    feature_columns,
    inside,
    place_columns,
)
from manifactor.views.explorer.previews import (
    FeaturePreview,
    Preview,
    Viewpoint,
    open_preview,
    signed_url,
    thumbnails,
)
from manifactor.views.figures import spectrum_in_words
from manifactor.views.pictures import as_grey, movie_bytes
from manifactor.views.report import templates
from manifactor.views.sections import Section

# Points drawn: browsers without a graphics card still follow the mouse. Selections count all
# samples.
MOST_SHOWN = 50_000

MOST_CORNERS = 1000  # of a lasso

# Samples of a selection that are averaged, drawn at random: images of them are read in a second.
MOST_CHOSEN = 1000


@dataclass(frozen=True)
class Strata:
    """Samples in cells, each searched by itself, so that every cell is represented."""

    places: Sequence[Place]  # on all factors
    factors: Sequence[int]  # those on which samples are searched
    units: Sequence[float]  # what the features of each factor are divided by
    rows: Sequence[np.ndarray]  # the samples of each cell
    trees: Sequence[cKDTree]  # of their features

    def near(
        self, at: Sequence[Sequence[float]], count: int
    ) -> tuple[np.ndarray, np.ndarray, dict[int, float]]:
        """Return about `count` samples near a place, the nearest first, and their weights.

        Then, by factor that is searched, how far they reach. Each cell gives as many samples as any
        other, at least one, and has a weight in proportion to its size.
        """
        point = np.concatenate(
            [_single(self.places[f], at[f]).features[0] / self.units[f] for f in self.factors]
        )
        each = ceil_div(count, len(self.trees))
        total = sum(map(len, self.rows))
        rows, weights, distances = [], [], []
        for tree, own in zip(self.trees, self.rows, strict=True):
            # As a list: for a single rank `query` drops the axis.
            ranks = np.arange(1, min(each, len(own)) + 1)
            distance, found = tree.query(point, k=ranks)
            rows.append(own[found])
            distances.append(distance)
            weights.append(np.full(len(found), len(own) / (total * len(found))))
        # The page shows the first of them as the nearest samples.
        order = np.argsort(np.concatenate(distances), kind="stable")
        nearest = np.concatenate(rows)[order]
        # Matched samples are spread over the other factors: no reach to tell.
        reached = {f: reach(self.places[f], at[f], nearest) for f in self.factors}
        return nearest, np.concatenate(weights)[order], reached


def strata(places: Sequence[Place], factor: int | None, *, count: int) -> Strata:
    """Return samples by their place on one factor, in cells of the others.

    The nearest of every cell together are near on the factor and spread over the others as all
    samples are: what changes along the factor is its own, even where factors depend on each other.
    Without a factor, samples are searched by their places on all, and there is one cell.
    """
    numbers = range(len(places))
    factors = numbers if factor is None else [factor]
    others = [places[f] for f in numbers if f not in factors]
    cell = joint_cells(others, smallest=count, n_samples=len(places[0]))
    order = np.argsort(cell, kind="stable")
    rows = np.split(order, np.flatnonzero(np.diff(cell[order])) + 1)
    features = [place.features for place in places]
    # One unit for all columns of a factor, so that its shape is kept. A constant coordinate has no
    # spread to divide by.
    units = [each.std(axis=0).max() or 1.0 for each in features]
    scaled = np.hstack([features[f] / units[f] for f in factors])
    # A balanced tree takes longer to build than all searches together.
    trees = [cKDTree(scaled[own], balanced_tree=False) for own in rows]
    return Strata(places, factors, units, rows, trees)


def reach(place: Place, at: Sequence[float], rows: np.ndarray) -> float:
    """Return the displayed distance from a place within which nine in ten samples lie."""
    difference = place[rows].apart(_single(place, at).displayed)
    if difference.ndim > 1:
        difference = np.linalg.norm(difference, axis=1)
    return float(np.quantile(difference, 0.9))


def _single(place: Place, at: Sequence[float]) -> Place:
    """Return one place of the same kind, from its displayed coordinate."""
    values = np.reshape(np.asarray(at, dtype=float), (1, *place.coordinate.shape[1:]))
    return Place.from_displayed(values, place.topology)


# What shows samples, which they are among all, their rows among these, and weights.
Found = tuple[Preview, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class RunScene:
    """A run, opened for looking."""

    run: Run
    fit: ManifoldFactorizer
    columns: dict[str, Column]
    shown: np.ndarray  # the samples that are drawn, ascending
    preview: Preview  # what is shown of samples
    strata: Future[dict[int | None, Strata]]  # searchable samples by factor, and by all
    missing: tuple[str, ...] = ()  # sentences on what could not be read
    added: Sequence[Any] = ()  # what packages show of the run

    @cached_property
    def sections(self) -> dict[str, Section]:
        """All that is said of the result."""
        return words.describe(self.run.record, self.fit)

    @cached_property
    def factors(self) -> list[dict]:
        """What the page needs to draw every factor, and to move along it."""
        return [about_factor(*each) for each in enumerate(self.run.places, start=1)]

    @property
    def most_averaged(self) -> int:
        """The largest number of samples in a mean."""
        return min(5000, len(self.run.rows))

    def about(self) -> dict:
        """Return what the page needs to build itself."""
        run, record, fit = self.run, self.run.record, self.fit
        return {
            "name": run.folder.resolve().name,
            "input": words.input_name(record),
            "verdict": " ".join(self.sections["verdict"].sentences),
            "warnings": [*self.sections["warnings"].sentences, *run.warnings, *self.missing],
            "samples": len(run.rows),
            "shown": len(self.shown),
            "factors": [
                {
                    "shape": fit.factors_[f].shape,
                    "probability": words.factor_probability(record, fit, f),
                    **described,
                }
                for f, described in enumerate(self.factors)
            ],
            "columns": {name: each.about() for name, each in self.columns.items()},
            "preview": self.preview.about(),
            "inner": INNER_RADIUS,
            # The page refuses more before it asks.
            "most_averaged": self.most_averaged,
            "most_corners": MOST_CORNERS,
            "exports": self.exports(),
        }

    def exports(self) -> list[str]:
        """Return the suffixes of the files that a selection can be written to."""
        # Of samples that were drawn, it would lack those that are not shown.
        return [] if self.run.drawn else endings(self.run)

    def near(self, look: Viewpoint) -> dict:
        """Return the mean of samples near a place, and the nearest."""
        found, reached = self._near(look)
        return {"reach": reached, **self._show(*found, look)}

    def _near(self, look: Viewpoint) -> tuple[Found, dict[int, float]]:
        """Return the samples near a place, and how far they reach on each factor."""
        one, count = look.factor if look.mode == "matched" else None, look.count
        preview, among = self._facing(look)
        if preview.rows is None:
            searched = self.strata.result()[one]
        elif len(among):
            # Images of one direction are few: searched faster than one is read.
            count = min(count, len(among))
            searched = strata(preview.places, one, count=count)
        else:
            return (preview, among, among, among), {}
        rows, weights, reached = searched.near(look.at, count)
        return (preview, among, rows, weights), reached

    def _facing(self, look: Viewpoint) -> tuple[Preview, np.ndarray]:
        """Return what shows samples, and which they are: those seen from a direction, or all."""
        preview = self.preview.facing(look)
        return preview, np.arange(len(self.run.rows)) if preview.rows is None else preview.rows

    def _show(
        self, preview: Preview, among: np.ndarray, rows: np.ndarray, weights: np.ndarray, look
    ) -> dict:
        nearest, places = among[rows[: look.singles]], self.run.places
        return {
            "count": len(rows),
            "samples": self.run.rows[nearest].tolist(),
            "names": [self.run.names[row] for row in nearest] if self.run.names else [],
            "places": [_rounded(place.displayed, nearest) for place in places],
            "deviations": [_rounded(place.displayed_deviation, nearest) for place in places],
            **preview.show(rows, weights, look),
        }

    def grid(self, look: Viewpoint, factors: Sequence[int], side: int) -> dict:
        """Return means at even steps along a factor or two, all in one grey scale."""
        look = replace(look, factor=factors[0])
        if len(factors) == 2:
            count = max(1, min(look.count, len(self.run.rows) // side**2))
            look = replace(look, mode="held", count=count)
        along, means, reaches = self._along(look, factors, side)
        steps = {f: np.ptp(ends) / (side - 1) for f, ends in zip(factors, along, strict=True)}
        return {
            "along": along,
            "count": look.count,
            # Samples beyond the next cell say little of their own.
            "far": [any(found.get(f, 0) > steps[f] for f in factors) for found in reaches],
            **({"means": means.tolist()} if means.ndim == 2 else thumbnails(as_grey(means))),
        }

    def movie(self, look: Viewpoint) -> bytes:
        """Return a GIF of mean images along a factor."""
        circular = self.run.places[look.factor].topology == "circle"
        frames = self._along(look, [look.factor], 24)[1]
        return movie_bytes(frames, circular=circular, kinds=[".gif"])[".gif"]

    def _along(self, look: Viewpoint, factors: Sequence[int], side: int) -> tuple:
        """Return coordinates along factors, means at all of them, and how far samples reach."""
        kinds = [self.run.places[f].topology for f in factors]
        if "other" in kinds:
            raise ValueError("means go along intervals and circles only; choose other factors.")
        along = [bin_labels(np.zeros(0), kind, n_bins=side)[1].tolist() for kind in kinds]
        means, reaches = [], []
        for values in product(*along):
            moved = dict(zip(factors, values, strict=True))
            at = tuple((moved[f],) if f in moved else each for f, each in enumerate(look.at))
            here = replace(look, at=at)
            (preview, _, rows, weights), reached = self._near(here)
            means.append(preview.picture(rows, weights, here))
            reaches.append(reached)
        if not means[0].size:
            raise ValueError(f"there is nothing to show. {self.preview.why}")
        return along, np.stack(means), reaches

    def mean(self, selections: Sequence[Sequence[Mapping]], look: Viewpoint) -> dict:
        """Return the mean of a selection, or the difference of two."""
        preview, among = self._facing(look)
        if not preview.of_samples:
            raise ValueError("a selection has a mean of images only: choose images above.")
        chosen = [np.flatnonzero(inside(self.columns, each)[among]) for each in selections]
        if not all(map(len, chosen)):
            raise ValueError("a selection must hold some samples; it holds none.")
        # The same ones each time.
        some = [np.random.default_rng(0).permutation(rows)[:MOST_CHOSEN] for rows in chosen]
        found = [(rows, np.full(len(rows), 1 / len(rows))) for rows in some]
        shown = {"counts": list(map(len, chosen)), "most": MOST_CHOSEN}
        if len(found) == 1:
            return {**self._show(preview, among, *found[0], look), **shown}
        one, two = (preview.picture(*each, look) for each in found)
        if one.ndim == 1:
            return {**shown, "mean": (one - two).tolist(), "spread": [0.0] * len(one)}
        return {**shown, "image": signed_url(one - two)}

    def sample(self, number: int) -> dict:
        """Return one of the samples that are drawn."""
        everyone, one = np.arange(len(self.run.rows)), self.preview.of_one()
        return self._show(one, everyone, self.shown[[number]], np.ones(1), Viewpoint())

    def select(self, conditions: Sequence[Mapping]) -> dict:
        """Return how many samples meet the conditions and, as bits, which of the drawn ones do."""
        found = inside(self.columns, conditions)
        # 50,000 samples are 8 kB, in every answer while a lasso is drawn.
        bits = np.packbits(found[self.shown]).tobytes()
        return {"count": int(found.sum()), "shown": b64encode(bits).decode()}

    def export(self, conditions: Sequence[Mapping], suffix: str) -> bytes:
        """Return the samples that meet the conditions as the bytes of a file."""
        chosen = np.flatnonzero(inside(self.columns, conditions))
        if not len(chosen):
            raise ValueError("the selection must hold some samples; it holds none.")
        return selection(self.run, chosen, suffix)

    def spectrum(self) -> dict:
        """Return eigenvalues, and which factor, from 0, has each pure function; -1 for mixtures."""
        spectrum = self.fit.spectrum_
        owner = owners(spectrum, self.fit.factorization_.coefficients)
        return {
            "eigenvalues": spectrum.eigenvalues[1:].tolist(),
            "owners": owner[1:].tolist(),
            "text": spectrum_in_words(self.fit),
        }

    def angles(self) -> dict:
        """Return mean squared cosines of gradients, and the number of functions of each factor."""
        values, sizes = angle_matrix(self.fit.spectrum_, self.fit.factorization_.coefficients)
        return {"values": np.round(values, 4).tolist(), "sizes": sizes}

    def evidence(self) -> dict:
        """Return the evidence and the diagnostics of the report as HTML."""
        sentences = [
            *words.sentences(self.sections, "verdict", "evidence", "findings"),
            *(text for each in self.added for text in each.sentences()),
            *words.about_samples(self.sections, self.run.record, self.fit),
        ]
        page = templates().get_template("evidence.html")
        return {"html": page.render(sentences=sentences, about=self.sections)}


def _rounded(values: np.ndarray | None, rows: np.ndarray) -> list | None:
    """Return the values of samples with four decimals, more than the page shows."""
    return None if values is None else np.round(values[rows], 4).tolist()


def scene_of(run: Run, fit: ManifoldFactorizer, added: Sequence[Any] = ()) -> RunScene:
    """Return the scene of a run and its fit, which were read before."""
    preview = next(filter(None, (each.preview() for each in added)), None) or open_preview(run)
    sources = {name: read for each in added for name, read in each.columns(preview).items()}
    # The numbers that were fitted: images have too many pixels to list.
    if isinstance(preview, FeaturePreview):
        samples = preview.samples
        sources["the input"] = lambda: feature_columns(samples, run.column_names)
    columns, missing = place_columns(run.places), []
    for name, read in sources.items():
        try:
            columns |= read()
        except (ValueError, OSError) as error:
            problem = one_line(error)
            if problem not in preview.why:
                missing.append(f"There are no columns of {name}: {problem}")
    n_samples = len(run.rows)
    # Those of some fitted samples only have no values for the others.
    if len(functions := fit.spectrum_.functions) == n_samples:
        for j, values in enumerate(functions.T[1:], start=1):
            columns[f"function{j}"] = Column(f"eigenfunction {j}", values, "functions")
    drawn = np.arange(n_samples)
    if n_samples > MOST_SHOWN:
        # The same samples each time: a link shows the same picture again.
        rng = np.random.default_rng(0)
        drawn = np.sort(rng.choice(n_samples, MOST_SHOWN, replace=False))
    # Trees of a million samples take seconds: meanwhile the page can be opened.
    near = partial(strata, run.places, count=preview.count)
    factors = (None, *range(len(run.places)))
    searched = ThreadPoolExecutor(1).submit(lambda: {f: near(f) for f in factors})
    return RunScene(run, fit, columns, drawn, preview, searched, tuple(missing), added)
