"""What was found in particles, and in images or volumes, in words and tables."""

from collections.abc import Iterable

import numpy as np

from manifactor._support.errors import listed
from manifactor.cryoem.all_views.model import UNKNOWN, angles_of, visibility
from manifactor.cryoem.all_views.shown import Shown
from manifactor.cryoem.all_views.volumes import RunMotions, is_of_all_views
from manifactor.judging.evidence import numeral
from manifactor.views.sections import Section, Table


def about(record: dict, n_fitted: int) -> list[Section]:
    """Return what run.json tells of particles, images and volumes."""
    sections = []
    if components := record.get("components"):
        sentences = [f"Samples: {components['text']}."]
        sections.append(Section("preparation", sentences, [_components_table(components)]))
    if is_of_all_views(record):
        total = record.get("n_samples", n_fitted)
        text = f"{total:,} particles, all placed; the motions were found in {n_fitted:,}."
        sections += [
            Section("samples", [text]),
            Section("findings", _findings(record["all_views"])),
        ]
    return sections


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
    axis = motion["axis"]
    around = f", around rot {axis[0]:.0f}°, tilt {axis[1]:.0f}°," if axis else ""
    share, particles = motion["blind"], motion["blind_particles"]
    return f"{shown}; {share:.0%}{around} are blind to it, with {particles:.0%} of the particles."


def volume_sentences(shown: Shown) -> list[str]:
    """Return what images say about another program's coordinates."""
    if shown.why:
        return [f"No volumes were computed along the factors: {shown.why}"]
    if shown.motions is None or not shown.motions.expected:
        return []
    return [
        "Volumes along the factors, computed from the images and these coordinates: those of two "
        f"half sets of images correlate by {_on_factors(shown.motions.model.consistency)}. Near 0, "
        "the images show nothing of the factor."
    ]


def blind_sentence(motions: RunMotions, f: int) -> str:
    """Return which directions are blind to a motion."""
    views = motions.model.views
    deviations = np.where(views.counts > 0, views.deviations[:, f], 0.0)
    worst = view_in_words(angles_of(views.directions[[deviations.argmax()]])[0])
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
        return (
            f"{known} No direction is blind to it: the deviation is at most {most}, from {worst}."
        )
    return (
        f"{known} Directions near {worst} are blind to it (deviation up to {most}): {share:.0%} of "
        f"the particles {tells}."
    )


def deviation_in_words(value: float, topology: str) -> str:
    """Return a deviation as people read it: degrees on a circle."""
    return f"{value:.0f}°" if topology == "circle" else f"{value:.2f}"


def view_in_words(view: tuple[float, float]) -> str:
    """Return rot and tilt as people read them."""
    rot, tilt = view
    return f"rot {rot:.0f}°, tilt {tilt:.0f}°"
