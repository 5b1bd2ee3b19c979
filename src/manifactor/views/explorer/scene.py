"""A run in JSON: what the page needs to know of factors, columns and previews."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Lock

import numpy as np

from manifactor.cryoem.all_views.shown import Shown
from manifactor.cryoem.all_views.volumes import open_motions
from manifactor.cryoem.files.formats import WRITERS
from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring.factor import angle_matrix, owners
from manifactor.runs.folder import read_run
from manifactor.runs.places import Place
from manifactor.runs.run import SELECTIONS, Run, open_run, selection
from manifactor.views import tables, words
from manifactor.views.explorer.columns import INNER_RADIUS, Column, inside, run_columns, view_of
from manifactor.views.explorer.molecule import Directed, MoleculePreview, preview_of
from manifactor.views.explorer.neighbourhoods import Strata, held, matched, near
from manifactor.views.explorer.previews import Preview, Viewpoint, mean_and_first, pictures
from manifactor.views.figures import scale_bar
from manifactor.views.report import templates


def extent(place: Place) -> dict:
    """Return the limits of a factor's displayed coordinates, and where to start.

    In the middle; at a sample where a surface may have none there.
    """
    if place.coordinate.ndim == 1:
        # The whole range, not that of the samples: places between them exist.
        high = 360 if place.topology == "circle" else 1
        return {"limits": [[0, high]], "start": [high / 2]}
    low, high = place.coordinate.min(axis=0), place.coordinate.max(axis=0)
    limits = np.column_stack([low, high])
    return {"limits": limits.tolist(), "start": place.coordinate[0].tolist()}


def displayed_deviations(place: Place, rows: np.ndarray) -> list[float] | None:
    """Return the displayed deviations of samples, None if they are unknown."""
    deviation = place.displayed_deviation
    return None if deviation is None else np.round(deviation[rows], 4).tolist()


def described_preview(preview: Preview) -> dict:
    """Return what the page needs to show samples."""
    width = getattr(preview, "width", None)
    return {
        "kind": preview.kind,
        "count": preview.count,
        "why": preview.why,
        "limits": getattr(preview, "limits", None),
        "bar": scale_bar(width) if width else None,
        "bars": getattr(preview, "bars", {}),
        "views": getattr(preview, "views", None),
        "sources": getattr(preview, "sources", {}),
    }


def described_column(column: Column) -> dict:
    """Return what the page needs to list a column."""
    low, high = column.limits()
    return {
        "label": column.label,
        "group": column.group,
        "cyclic": column.cyclic,
        "low": low,
        "high": high,
    }


# A run as the page sees it: what to draw, what lies near a place, what is selected.

# Points drawn: browsers without a graphics card still follow the mouse. Selections count all
# samples.
MOST_SHOWN = 50_000

# Corners of a lasso.
MOST_CORNERS = 1000


@dataclass(frozen=True)
class RunScene:
    """A run, opened for looking."""

    run: Run
    fit: ManifoldFactorizer
    columns: dict[str, Column]
    shown: np.ndarray  # the samples that are drawn, ascending
    preview: Preview  # what is shown of samples
    missing: tuple[str, ...] = ()  # sentences on what could not be read
    lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    @property
    def strata(self) -> dict[tuple[str, int], Strata]:
        """Searchable samples by mode and factor, built by the first who asks."""
        # Building takes seconds for a million samples: other requests wait for it.
        with self.lock:
            return self._strata

    @cached_property
    def _strata(self) -> dict[tuple[str, int], Strata]:
        places, count = self.run.places, self.preview.count
        # The same samples for all factors: built once.
        together = held(places)
        built = {("held", f): together for f in range(len(places))}
        for f in range(len(places)):
            built["matched", f] = matched(places, f, count=count)
        return built

    @cached_property
    def extents(self) -> list[dict]:
        """The limits of every factor's coordinates, and where to start."""
        return [extent(place) for place in self.run.places]

    @property
    def most_averaged(self) -> int:
        """The largest number of samples in a mean."""
        return min(5000, len(self.run.rows))

    def about(self) -> dict:
        """Return what the page needs to build itself."""
        run, preview = self.run, self.preview
        numbers = range(1, len(run.places) + 1)
        columns = {name: described_column(each) for name, each in self.columns.items()}
        return {
            "name": run.folder.resolve().name,
            "input": words.input_name(run.record),
            "verdict": words.verdict_sentence(run.record, self.fit),
            "warnings": [*words.warnings(run.record), *run.warnings, *self.missing],
            "samples": len(run.rows),
            "shown": len(self.shown),
            "factors": [self._factor(number) for number in numbers],
            "columns": columns,
            "preview": described_preview(preview),
            "inner": INNER_RADIUS,
            # The page refuses more before it asks.
            "most_averaged": self.most_averaged,
            "most_corners": MOST_CORNERS,
            "exports": self.exports(),
        }

    def _factor(self, number: int) -> dict:
        place = self.run.place(number)
        # Points that are drawn may have columns which no list offers.
        x, y = view_of(number, place)
        columns = [
            name
            for name, column in self.columns.items()
            if column.group == "places" and name.split("_")[0] == f"factor{number}"
        ]
        return {
            "topology": place.topology,
            "shape": self.fit.factors_[number - 1].shape,
            "columns": columns,
            "view": {"x": x, "y": y},
            **self.extents[number - 1],
        }

    def exports(self) -> list[str]:
        """Return the suffixes of the files that a selection can be written to."""
        if self.run.drawn:
            return []  # it would lack the samples that are not shown
        particles = Path(self.run.record.get("particles", ""))
        own = particles.suffix.lower()
        # A table of particles can be written in its own format only.
        own_format = [own] if own in WRITERS else []
        return own_format + [each for each in SELECTIONS if each not in WRITERS]

    def near(
        self, at: Sequence[Sequence[float]], *, factor: int, mode: str, count: int, look: Viewpoint
    ) -> dict:
        """Return the mean of about `count` samples near a place, and the nearest."""
        look = replace(look, at=tuple(at))
        one = factor if mode == "matched" else None
        if isinstance(self.preview, MoleculePreview) and look.source == "images":
            return self._near_direction(self.preview.directed(look.view), at, one, count, look)
        strata = self.strata[mode, factor]
        rows, weights, reached = near(strata, self.run.places, at, factor=one, count=count)
        return {
            "count": len(rows),
            "reach": reached,
            **self._nearest(rows[: look.singles]),
            **self.preview.shown(rows, weights, look),
        }

    def _nearest(self, rows: np.ndarray) -> dict:
        """Return single samples with their places."""
        places = self.run.places
        return {
            "samples": self.run.rows[rows].tolist(),
            # Four decimals are more than the page shows.
            "places": [np.round(place.displayed[rows], 4).tolist() for place in places],
            "deviations": [displayed_deviations(place, rows) for place in places],
        }

    def _near_direction(
        self,
        directed: Directed,
        at: Sequence[Sequence[float]],
        factor: int | None,
        count: int,
        look: Viewpoint,
    ) -> dict:
        """Return the mean of images near a place that are seen from a direction."""
        places, count = directed.places, min(count, len(directed.rows))
        if not count:
            nothing = self._nearest(directed.rows)
            return {"count": 0, "reach": {}, "cone": directed.described, **nothing}
        # A cone has few samples: built faster than an image is read.
        strata = held(places) if factor is None else matched(places, factor, count=count)
        rows, weights, reached = near(strata, places, at, factor=factor, count=count)
        return {
            "count": len(rows),
            "reach": reached,
            "cone": directed.described,
            **self._nearest(directed.rows[rows[: look.singles]]),
            **pictures(*mean_and_first(directed.images, rows, weights, singles=look.singles)),
        }

    def selected(self, conditions: Sequence[Mapping]) -> dict:
        """Return how many samples meet the conditions, and which of the drawn ones.

        The latter as one bit each.
        """
        found = inside(self.columns, conditions)
        # 50,000 samples are 8 kB, in every answer while a lasso is drawn.
        bits = np.packbits(found[self.shown]).tobytes()
        count = int(found.sum())
        return {"count": count, "shown": b64encode(bits).decode()}

    def exported(self, conditions: Sequence[Mapping], suffix: str) -> bytes:
        """Return the samples that meet the conditions as the bytes of a file."""
        chosen = np.flatnonzero(inside(self.columns, conditions))
        if not len(chosen):
            raise ValueError("the selection must hold some samples; it holds none.")
        return selection(self.run, chosen, suffix)

    def spectrum(self) -> dict:
        """Return eigenvalues, and the factor, from 0, whose pure function each is.

        -1 for products and mixtures.
        """
        spectrum = self.fit.spectrum_
        owner = owners(spectrum, self.fit.factors_)
        return {"eigenvalues": spectrum.eigenvalues[1:].tolist(), "owners": owner[1:].tolist()}

    def angles(self) -> dict:
        """Return mean squared cosines between gradients of the factors' functions.

        And the number of functions of each factor.
        """
        # Rounded, since the page colours cells by it.
        values, sizes = angle_matrix(self.fit.spectrum_, self.fit.factors_)
        return {"values": np.round(values, 4).tolist(), "sizes": sizes}

    def evidence(self) -> dict:
        """Return the evidence and the diagnostics of the report as HTML."""
        record, fit = self.run.record, self.fit
        shown = self.preview.what if isinstance(self.preview, MoleculePreview) else Shown()
        sentences = [
            words.evidence(record, fit),
            *words.all_views_sentences(record),
            *words.volume_sentences(shown),
            *words.about_particles(record),
        ]
        page = templates().get_template("evidence.html")
        return {"html": page.render(sentences=sentences, tables=tables.run_tables(record, fit))}


def open_scene(folder, *, shown: Shown | None = None) -> RunScene:
    """Return a run folder, opened for looking."""
    run = open_run(folder, some=True)
    _, fit = read_run(run.folder)
    return scene_of(run, fit, shown or Shown(open_motions(run, fit)))


def scene_of(run: Run, fit: ManifoldFactorizer, shown: Shown) -> RunScene:
    """Return the scene of a run and its fit, which were read before."""
    preview = preview_of(run, shown)
    columns, missing = run_columns(run, preview)
    n_samples = len(run.rows)
    drawn = np.arange(n_samples)
    if n_samples > MOST_SHOWN:
        # The same samples each time: a link shows the same picture again.
        rng = np.random.default_rng(0)
        drawn = np.sort(rng.choice(n_samples, MOST_SHOWN, replace=False))
    return RunScene(run, fit, columns, drawn, preview, missing)
