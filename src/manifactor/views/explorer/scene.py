"""A run as the page sees it: what to draw, what lies near a place, which samples are selected."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock

import numpy as np

from manifactor.cryoem.formats import WRITERS
from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring import ownership
from manifactor.inputs.files import column_names
from manifactor.runs.folder import read_run
from manifactor.runs.places import Place
from manifactor.runs.run import Run, open_run
from manifactor.runs.selection import SELECTIONS, selection
from manifactor.views.explorer.behind import Behind, Features, Look, behind
from manifactor.views.explorer.columns import (
    INNER,
    Column,
    feature_columns,
    inside,
    particle_columns,
    place_columns,
    view_of,
)
from manifactor.views.explorer.near import Strata, held, matched, point_of, reach
from manifactor.views.markup import paragraph
from manifactor.views.report import choices_table, diagnostics_section, evidence_section
from manifactor.views.words import (
    about_particles,
    evidence,
    input_name,
    verdict_sentence,
)

MOST_SHOWN = 50_000  # points drawn; selections count all samples
MOST_AVERAGED = 5000  # samples of a mean
MOST_CORNERS = 1000  # of a lasso
MODES = ("matched", "held")


@dataclass(frozen=True)
class Scene:
    """A run, opened for looking.

    Attributes
    ----------
    run : Run
    fit : ManifoldFactorizer
    columns : dict of str to Column
    shown : ndarray of int
        The samples that are drawn, ascending.
    behind : Behind
        What lies behind the samples.
    """

    run: Run
    fit: ManifoldFactorizer
    columns: dict[str, Column]
    shown: np.ndarray
    behind: Behind
    making: Lock = field(default_factory=Lock, repr=False, compare=False)

    @property
    def strata(self) -> dict[tuple[str, int], Strata]:
        """Samples by mode and factor, ready to be searched; whoever asks first makes them, others wait."""
        with self.making:
            return self._strata

    @cached_property
    def _strata(self) -> dict[tuple[str, int], Strata]:
        places, count = self.run.places, self.behind.count
        together = held(places)
        out = {("held", f): together for f in range(len(places))}
        return out | {
            ("matched", f): matched(places, f, count=count) for f in range(len(places))
        }

    def about(self) -> dict:
        """What the page must know to build itself."""
        return self._about

    @cached_property
    def _about(self) -> dict:
        record = self.run.record
        return {
            "name": self.run.folder.resolve().name,
            "input": input_name(record),
            "verdict": verdict_sentence(self.fit),
            "warnings": [
                *(t for t in about_particles(record) if t.startswith("Warning")),
                *self.run.warnings,
            ],
            "samples": len(self.run.rows),
            "shown": len(self.shown),
            "factors": [
                self._factor(number) for number in range(1, len(self.run.places) + 1)
            ],
            "columns": {
                name: _described(column) for name, column in self.columns.items()
            },
            "behind": {
                "kind": self.behind.kind,
                "count": self.behind.count,
                "why": self.behind.why,
            },
            "limits": getattr(self.behind, "limits", None),
            "inner": INNER,
            "most_averaged": min(MOST_AVERAGED, len(self.run.rows)),
            "most_corners": MOST_CORNERS,
            "exports": self.exports(),
        }

    def _factor(self, number: int) -> dict:
        place = self.run.place(number)
        x, y = view_of(number, place)
        return {
            "topology": place.topology,
            "shape": self.fit.factors_[number - 1].shape,
            "columns": [
                name
                for name, c in self.columns.items()
                if c.group == "places" and _is_of(name, number)
            ],
            "view": {"x": x, "y": y},
            **_extent(place),
        }

    def exports(self) -> list[str]:
        """Endings of the files that a selection can be written to."""
        own = Path(self.run.record.get("particles", "")).suffix.lower()
        return ([own] if own in WRITERS else []) + [
            suffix for suffix in SELECTIONS if suffix not in WRITERS
        ]

    def near(
        self,
        at: Sequence[Sequence[float]],
        *,
        factor: int,
        mode: str,
        count: int,
        look: Look,
    ) -> dict:
        """What lies near a place: the mean of about `count` samples, and the nearest of them."""
        point = point_of(self.run.places, at, factor if mode == "matched" else None)
        rows, weights = self.strata[mode, factor].nearest(point, count)
        told = range(len(at)) if mode == "held" else [factor]
        first = rows[: look.singles]
        places = [
            np.round(place.coordinate[first], 4).tolist() for place in self.run.places
        ]
        return {
            "count": len(rows),
            "reach": {f: reach(self.run.places[f], at[f], rows) for f in told},
            "samples": self.run.rows[first].tolist(),
            "places": places,
            **self.behind.shown(rows, weights, look),
        }

    def selected(self, conditions: Sequence[Mapping]) -> dict:
        """How many of all samples meet the conditions, and which of the drawn ones do, a bit each."""
        found = inside(self.columns, conditions)
        return {
            "count": int(found.sum()),
            "shown": b64encode(np.packbits(found[self.shown]).tobytes()).decode(),
        }

    def exported(self, conditions: Sequence[Mapping], suffix: str) -> bytes:
        """The samples that meet the conditions as the bytes of a file."""
        chosen = np.flatnonzero(inside(self.columns, conditions))
        if not len(chosen):
            raise ValueError("the selection must hold some samples; it holds none.")
        return selection(self.run, chosen, suffix)

    def spectrum(self) -> dict:
        """Eigenvalues and the factor, from 0, whose pure function each is; -1 for products and mixtures."""
        spectrum = self.fit.spectrum_
        owner = ownership.owners(spectrum, self.fit.factors_)
        return {
            "eigenvalues": spectrum.eigenvalues[1:].tolist(),
            "owners": owner[1:].tolist(),
        }

    def angles(self) -> dict:
        """Mean squared cosines between gradients of the factors' functions, and how many functions each has there."""
        values, sizes = ownership.angle_matrix(self.fit.spectrum_, self.fit.factors_)
        return {"values": np.round(values, 4).tolist(), "sizes": sizes}

    def evidence(self) -> dict:
        """The report's words and tables as HTML: why the verdict is what it is, what else may explain the factors."""
        record, fit = self.run.record, self.fit
        parts = [
            *(paragraph(text) for text in (evidence(fit), *about_particles(record))),
            evidence_section(fit),
        ]
        return {
            "html": "".join(
                [*parts, diagnostics_section(record, fit), choices_table(record, fit)]
            )
        }


def open_scene(folder) -> Scene:
    """A run folder, opened for looking."""
    run = open_run(folder)
    _, fit = read_run(run.folder)
    lies_behind = behind(run)
    columns = place_columns(run.places)
    if "particles" in run.record:
        with suppress(
            ValueError, OSError
        ):  # particles that cannot be read: `lies_behind` says why
            columns |= particle_columns(run.particles)
    if isinstance(lies_behind, Features):
        columns |= feature_columns(
            lies_behind.samples, column_names(run.record["input"])
        )
    n = len(run.rows)
    shown = (
        np.random.default_rng(0).choice(n, MOST_SHOWN, replace=False)
        if n > MOST_SHOWN
        else np.arange(n)
    )
    return Scene(run, fit, columns, np.sort(shown), lies_behind)


def _is_of(name: str, number: int) -> bool:
    return name == f"factor{number}" or name.startswith(f"factor{number}_")


def _extent(place: Place) -> dict:
    """The limits of a factor's coordinates, and where to start: in the middle, or at a sample where there is none."""
    if place.coordinate.ndim == 1:
        high = 360 if place.topology == "circle" else 1
        return {"limits": [[0, high]], "start": [high / 2]}
    limits = [[float(axis.min()), float(axis.max())] for axis in place.coordinate.T]
    return {"limits": limits, "start": place.coordinate[0].tolist()}


def _described(column: Column) -> dict:
    low, high = column.limits()
    return {
        "label": column.label,
        "group": column.group,
        "cyclic": column.cyclic,
        "low": low,
        "high": high,
    }
