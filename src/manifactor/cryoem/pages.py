"""What report and explorer show of particles, images and volumes beside the factors."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from manifactor._support.errors import listed, one_line
from manifactor._support.parameters import require_number
from manifactor._support.stages import Stages
from manifactor.cryoem import previews
from manifactor.cryoem.all_views.model import UNKNOWN, ViewMap, angles_of, visibility
from manifactor.cryoem.all_views.volumes import (
    RunMotions,
    Shown,
    Wanted,
    has_all_views,
    known_motions,
    open_motions,
    read_volumes,
    shown_cones,
    volumes_notice,
)
from manifactor.cryoem.averages import Averages, average, place_captions
from manifactor.cryoem.directions import Cone, sphere_cells
from manifactor.cryoem.maps import sphere
from manifactor.cryoem.runs import seen_from
from manifactor.estimators import ManifoldFactorizer
from manifactor.judging.evidence import numeral
from manifactor.runs.run import Run
from manifactor.views import plots
from manifactor.views.explorer.columns import Column, feature_columns
from manifactor.views.explorer.previews import Preview
from manifactor.views.figures import film, panel, strip
from manifactor.views.pictures import movie_bytes
from manifactor.views.sections import Figure, Section, Table

# Bands of the map of the sphere: its cells are so much smaller than those of the views that none of
# these is missed.
BANDS = 48
# Samples that are averaged: the mean of more looks the same and takes longer.
MOST_AVERAGED = 20_000

# Pixels of images of the molecule: the model has no finer detail.
PIXELS = 160


class ParticlePages(Shown):
    """What is shown of a run of particles, images or volumes; nothing of numbers alone."""

    @staticmethod
    def about(record: dict, fit: ManifoldFactorizer) -> Sequence[Section]:
        """Return how samples were made of images, and what was found in all views."""
        sections = []
        if components := record.get("components"):
            sentences = [f"Samples: {components['text']}."]
            sections.append(Section("preparation", sentences, [_components_table(components)]))
        if "all_views" in record:
            n_fitted = len(fit.spectrum_.weights)
            total = record.get("n_samples", n_fitted)
            text = f"{total:,} particles, all placed; the motions were found in {n_fitted:,}."
            sections += [
                Section("samples", [text]),
                Section("findings", _findings(record["all_views"])),
            ]
        return sections

    @staticmethod
    def wanted(run: Run, options: Any) -> Wanted:
        """Return what was asked for; refuse what a run cannot show, before it is computed."""
        folder, factor = options.volumes, options.volumes_along
        if factor is not None and folder is None:
            raise ValueError(
                "--volumes-along is the factor of a series of volumes; give its folder "
                "with --volumes, or leave it out."
            )
        volumes = None if folder is None else read_volumes(folder, run, factor=factor)
        if options.width is not None:
            require_number("width", options.width, above=0, high=90)
        directed = options.view is not None or options.width is not None
        if directed and volumes is None and not has_all_views(run):
            raise ValueError(
                "--view and --width choose among particles of all views; "
                f"{run.folder} has none. Leave them out."
            )
        return Wanted(options.view, options.width, volumes)

    notice = staticmethod(volumes_notice)

    @classmethod
    def open(
        cls, run: Run, fit: ManifoldFactorizer, wanted: Any = None, *, stages: Stages | None = None
    ) -> "ParticlePages":
        """Return what is shown, with volumes along the factors if something is `wanted`."""
        if wanted is None:
            return cls(run, open_motions(run, fit))
        motions, why = None, ""
        try:
            motions = known_motions(run, fit, stages=stages)
        except (ValueError, OSError) as error:
            why = one_line(error)
        return cls(run, motions, shown_cones(run, motions, wanted), why, wanted)

    def problem(self) -> str:
        """Return why there are no volumes."""
        return self.why and f"no volumes along the factors: {self.why}"

    def sentences(self) -> list[str]:
        """Return what images say about another program's coordinates."""
        if self.why:
            return [f"No volumes were computed along the factors: {self.why}"]
        motions = self.motions
        if motions is None or not motions.expected:
            return []
        return [
            "Volumes along the factors, computed from the images and these coordinates: those of "
            f"two half sets of images correlate by {_on_factors(motions.model.consistency)}. Near "
            "0, the images show nothing of the factor."
        ]

    def notes(self) -> list[str]:
        """Return of which images there are averages."""
        # Along a factor of more dimensions there are none.
        return [
            f"Factor {number}: averages of {cone}"
            for number, cone in enumerate(self.cones, start=1)
            if self.run.place(number).topology != "other"
        ]

    def samples(self, f: int) -> Figure | None:
        """Return the deviations of all particles, not only of those fitted."""
        if self.motions is None or self.motions.expected:
            return None
        place = self.run.places[f]
        assert place.displayed_deviation is not None
        quantiles = np.quantile(place.displayed_deviation, [0.5, 0.95])
        middle, high = (deviation_in_words(value, place.topology) for value in quantiles)
        text = (
            f"Coordinates of all {len(place):,} particles and their deviations: {middle} or "
            f"less for half of them, {high} or more for one in twenty."
        )
        count = plots.drawn(len(place))
        if count < len(place):
            text += f" Drawn: {count:,} of them."
        draw = partial(plots.deviation, place=place)
        alt = f"Cloud of coordinates on factor {f + 1}."
        return panel(f"deviation{f + 1}", draw, alt, text, kind="cloud")

    def figures(self, f: int) -> list[Figure]:
        """Return how well each direction shows the motion."""
        motions = self.motions
        if motions is None:
            return []
        views = motions.model.views
        text = blind_sentence(motions, f)
        return [_map(f"seen{f + 1}", views, views.deviations[:, f], "deviation", text)]

    def sections(self) -> list[Section]:
        """Return the number of particles in each direction."""
        if self.motions is None:
            return []
        views = self.motions.model.views
        counts = views.counts
        fullest = angles_of(views.cells.centres[[counts.argmax()]])[0]
        text = (
            f"{counts.sum():,} particles by direction: {counts.min():,} to {counts.max():,} in "
            f"each of {len(counts)} cells of half the sphere, most near "
            f"{view_in_words(fullest)}. Opposite directions, whose images are mirrored, "
            "count as one."
        )
        map_of_all = _map("particles", views, counts, "particles in a cell", text)
        return [Section("views", figures=[map_of_all], title="Views")]

    def strips(self, f: int) -> list[Figure]:
        """Return images along a factor."""
        volumes = self.asked.volumes
        strips = [] if self.motions is None else [self._molecule(f)]
        # Images of particles themselves stand beside what was computed from all of them.
        if self.cones or self.motions is None:
            strips += self._averages(f)
        if volumes is not None and volumes.factor == f:
            strips.append(self._volumes(self.view(f) or (0.0, 0.0)))
        return strips

    def _molecule(self, f: int) -> Figure:
        motions = self.motions
        assert motions is not None
        # The film has three images for each of the strip, which are the middle ones.
        found = motions.along(f, count=21, size=PIXELS, view=self.view(f))
        circular = motions.scales[f].topology == "circle"
        some = slice(0 if circular else 1, None, 3)
        others = ", the other motions in their middle" if len(motions.scales) > 1 else ""
        best = ", which shows this motion best" if self.asked.view is None else ""
        text = (
            f"The molecule at {len(found.images[some])} coordinates on factor {f + 1}, seen from "
            f"{view_in_words(found.view)}{best}{others}: projections of the volumes that all "
            "particles together gave, without CTF."
        )
        captions = place_captions(found.places, found.places.displayed)
        moving = film(found.images, captions, PIXELS, circular=circular)
        look: dict[str, Any] = {"side": PIXELS, "width": motions.model.box, "film": moving}
        return strip(found.images[some], captions[some], "mean images", text, **look)

    def _averages(self, f: int) -> list[Figure]:
        """Return means along a factor, or why they cannot be read; nothing of a run of numbers."""
        record, cone = self.run.record, self.cones[f] if self.cones else None
        # Nothing to average: no sentence about what is missing is needed.
        of_pictures = (record.get("columns") or {}).get("image")
        if not of_pictures and "particles" not in record and "components" not in record:
            return []
        try:
            found = averages_along(self.run, f, cone)
        except (ValueError, OSError) as error:
            return [Figure(f"No averages along this factor: {one_line(error)}")]
        total = len(self.run.rows)
        amount = f"{total:,} {'volumes' if found.of_volumes else 'images'}"
        if cone is not None:
            total, amount = cone.n_particles, str(cone)
        if total > MOST_AVERAGED:
            amount = f"{MOST_AVERAGED:,} of {amount}, drawn at random"
        corrected = ", corrected for their CTF" if found.ctf_corrected else ""
        text = f"Means of {amount}{corrected}, along the factor: {found}."
        captions = found.captions[0]
        moving = film(found.images, captions, 96, circular=found.is_circular)
        look: dict[str, Any] = {"side": 96, "width": found.width, "film": moving}
        return [strip(found.images, captions, "mean images", text, **look)]

    def _volumes(self, view: tuple[float, float]) -> Figure:
        """Return projections of given volumes in a direction."""
        volumes = self.asked.volumes
        assert volumes is not None
        # At most 12, as many as a page shows side by side.
        numbers = np.unique(np.rint(np.linspace(0, len(volumes.names) - 1, 12)).astype(int))
        images = np.stack([volumes.image(number, view) for number in numbers])
        text = (
            f"{len(numbers)} of {len(volumes.names)} volumes of {volumes.folder.name}, "
            f"{volumes.names[0]} to {volumes.names[-1]}, at their coordinates on factor "
            f"{volumes.factor + 1}, projected from {view_in_words(view)}."
        )
        captions = place_captions(volumes.place, volumes.place.displayed[numbers])
        return strip(images, captions, "projections", text, side=PIXELS, width=volumes.width)

    def movies(self, f: int) -> Mapping[str, bytes]:
        """Return movies of the molecule, or of means, along a factor."""
        if self.motions is None:
            means = averages_along(self.run, f)
            return movie_bytes(means.images, circular=means.is_circular)
        found = self.motions.along(f, count=24, size=PIXELS, view=self.view(f))
        return movie_bytes(found.images, circular=self.run.places[f].topology == "circle")

    def preview(self) -> Preview | None:
        """Return a molecule or given volumes, else images or volumes of the samples."""
        return previews.open_preview(self)

    def columns(self, preview: Preview) -> dict[str, Callable[[], Mapping[str, Column]]]:
        """Return functions that read columns of particles, and beside a molecule the samples."""
        run = self.run
        sources: dict[str, Callable[[], Mapping[str, Column]]] = {}
        if "particles" in run.record:
            sources["particles"] = lambda: previews.particle_columns(run.particles)
        if isinstance(preview, previews.MoleculePreview) and "all_views" not in run.record:
            sources["the input"] = lambda: feature_columns(run.samples(), run.column_names)
        return sources


def averages_along(run: Run, f: int, cone: Cone | None = None) -> Averages:
    """Average images or volumes along a factor as the page does."""
    # As many as a page shows side by side. With one factor there is nothing to hold still.
    n_bins, matched = 12, len(run.places) > 1
    if cone is not None:
        run = seen_from(run, cone.view, width=cone.width, or_opposite=True)
        # Fewer bins, so that each has about 25 images. Few images have no matches.
        n_bins = int(np.clip(len(run.rows) // 25, 4, n_bins))
        matched = matched and len(run.rows) >= 100 * n_bins
    return average(run, [f + 1], n_bins=n_bins, matched=matched, most=MOST_AVERAGED)


def _map(name: str, views: ViewMap, values: np.ndarray, label: str, text: str) -> Figure:
    """Return a value of each direction on the map of the sphere."""
    cells = sphere_cells(BANDS)
    shown = np.nan_to_num(values[views.cells.index(cells.centres)].astype(float))

    def draw(ax) -> None:
        sphere(ax, cells, shown, label=label)
        # An image of the cells is smaller than their outlines.
        ax.collections[0].set_rasterized(True)

    alt, size = "Map of the sphere.", (4.0, 2.2)
    return panel(name, draw, alt, text, size=size, kind="cloud sphere")


# What was found, in sentences and tables.


def _components_table(components: dict) -> Table:
    """Return signal to noise of the principal components of images or volumes."""
    pairs = zip(components.get("signal_to_noise", ()), components.get("weights", ()), strict=False)
    rows = [
        (str(number), f"{ratio:.3g}", f"{weight:.2f}")
        for number, (ratio, weight) in enumerate(pairs, start=1)
    ]
    header = ("component", "signal to noise", "weight")
    return Table("Principal components of the images or volumes", header, rows)


def _findings(found: dict) -> list[str]:
    """Return what was found in particles of all views."""
    rank = len(found.get("information", []))
    correlations = listed([f"{r:.2f}" for r in found.get("agreement", [])[:rank]])
    sentences = [
        "Particles of all views, one coordinate for all: "
        f"{numeral(rank)} principal volume{'' if rank == 1 else 's'}, on which two half sets of "
        f"images agree (correlations {correlations})."
    ]
    # None where a share is not known.
    shares = found.get("consistency", [])
    if any(share is not None for share in shares):
        sentences.append(
            "Consistency between views, the share of a motion in some views that views far from "
            f"them predict: {_on_factors(shares)}; 1 if a coordinate means the same in all views."
        )
    motions = list(enumerate(found.get("motions", []), start=1))
    if motions:
        medians = [
            f"{deviation_in_words(motion['median_deviation'], motion['topology'])} on factor {f}"
            for f, motion in motions
        ]
        sentences += [
            f"All particles are placed; the median deviation is {listed(medians)}.",
            " ".join(_visibility(motion, f) for f, motion in motions),
        ]
    return sentences


def _on_factors(values: Iterable[float | None]) -> str:
    numbered = enumerate(values, start=1)
    return listed([f"{r:.2f} on factor {f}" for f, r in numbered if r is not None])


def _visibility(motion: dict, number: int) -> str:
    """Return how many directions show a motion."""
    if motion["shown"] == 1:
        return f"All directions show factor {number}."
    shown = f"{motion['shown']:.0%} of the directions show factor {number}"
    if not motion["blind"]:
        return f"{shown}; none is blind to it."
    around = f", around {view_in_words(motion['axis'])}," if motion["axis"] else ""
    return (
        f"{shown}; {motion['blind']:.0%}{around} are blind to it, with "
        f"{motion['blind_particles']:.0%} of the particles."
    )


def blind_sentence(motions: RunMotions, f: int) -> str:
    """Return which directions are blind to a motion."""
    views = motions.model.views
    deviations = np.where(views.counts > 0, views.deviations[:, f], 0.0)
    worst = view_in_words(angles_of(views.cells.centres[[deviations.argmax()]])[0])
    share = visibility(views, f)["blind_particles"]
    what, tells = "Deviation of coordinates by direction", "have no sure coordinate"
    if motions.expected:
        what = "Deviation expected of a coordinate that a single image tells, by direction"
        tells = "show nothing of it"
    known = (
        f"{what}, as a share of the motion: {UNKNOWN:.2f} where images show nothing of it. It is "
        f"seen best from {view_in_words(motions.best_view(f))}."
    )
    most = f"{deviations.max():.2g}"
    if not share:
        blind = f"No direction is blind to it: the deviation is at most {most}, from {worst}."
    else:
        blind = (
            f"Directions near {worst} are blind to it (deviation up to {most}): {share:.0%} of the "
            f"particles {tells}."
        )
    return f"{known} {blind}"


def deviation_in_words(value: float, topology: str) -> str:
    """Return a deviation as people read it: degrees on a circle."""
    return f"{value:.0f}°" if topology == "circle" else f"{value:.2f}"


def view_in_words(view: tuple[float, float]) -> str:
    """Return rot and tilt as people read them."""
    rot, tilt = view
    return f"rot {rot:.0f}°, tilt {tilt:.0f}°"
