"""A run in words: sentences for the page, and the whole report as plain text."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from manifactor.cryoem.all_views.shown import Shown
from manifactor.cryoem.all_views.volumes import is_of_all_views
from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring.factor import Factor
from manifactor.runs.folder import run_evidence
from manifactor.views import tables

# Characters of a line of plain text; most terminals are at least as wide.
TEXT_WIDTH = 100
NO_PRODUCT = {
    "one factor": "No product was found: the data have one factor, {shapes}.",
    "no product": (
        "The data have several directions, but are no product of them; they are taken "
        "as one factor, {shapes}."
    ),
    "cannot tell": (
        "It cannot be told whether the data are a product; they are taken as one factor, {shapes}."
    ),
}
NUMERALS = ("no", "one", "two", "three", "four", "five", "six")


def report_text(record: dict, fit: ManifoldFactorizer) -> str:
    """Return the report of a run as plain text."""
    command = record.get("command", "run")
    introduction = [
        f"{command} of {record.get('input', 'unknown input')}",
        "",
        summary(record, fit),
        samples_sentence(record, fit),
        *preparation_sentences(record),
        *all_views_lines(record),
        *confounder_sentences(record),
    ]
    # What there is nothing to say about is left out.
    shown = tables.run_tables(record, fit).values()
    texts = [table.as_text(TEXT_WIDTH) for table in shown if table.rows]
    return "\n\n".join(["\n".join(introduction), *texts]) + "\n"


def summary(record: dict, fit: ManifoldFactorizer) -> str:
    """Return verdict and factors in words."""
    verdict = run_evidence(fit, record).verdict
    reasons = fill(f"Verdict: {verdict}. {evidence(record, fit)}", TEXT_WIDTH)
    numbered = enumerate(fit.factors_, start=1)
    factors = [f"Factor {number}: {factor}." for number, factor in numbered]
    return "\n".join([reasons, *factors])


def evidence(record: dict, fit: ManifoldFactorizer) -> str:
    """Return the verdict and its reasons, for those who type commands."""
    return _with_options(str(run_evidence(fit, record)))


def _with_options(text: str) -> str:
    """Return a text with options of the command in place of parameters."""
    # The evidence speaks of parameters, as for those who write Python.
    return re.sub(r"`(\w+)`", _as_option, text)


def _as_option(parameter: re.Match) -> str:
    return "--" + parameter[1].replace("_", "-")


def tests_sentence(record: dict, fit: ManifoldFactorizer) -> str:
    """Return how many tests failed, and what is wrong."""
    found = run_evidence(fit, record)
    total, failed = len(found.tests), len(found.failed)
    if not failed:
        return f"All {total} tests were passed."
    reason = _with_options(found.reason).rstrip(".")
    return f"{failed} of {total} tests failed: {reason}."


def input_name(record: dict) -> str:
    """Return the name of the input, with the view where one was picked."""
    name = Path(record.get("input", "unknown input")).name
    # Direction of projection, in degrees.
    view = record.get("view")
    return f"{name}, seen from {view[0]:g}, {view[1]:g}" if view else name


def samples_sentence(record: dict, fit: ManifoldFactorizer) -> str:
    """Return how many samples there are, and how many were fitted."""
    fitted = len(fit.spectrum_.weights)
    total = record.get("n_samples", fitted)
    if is_of_all_views(record):
        return f"{total:,} particles, all placed; the motions were found in {fitted:,}."
    if fitted == total:
        return f"{total:,} samples, all of them fitted."
    return f"{total:,} samples: {fitted:,} were fitted, the others placed beside them."


def verdict_sentence(record: dict, fit: ManifoldFactorizer) -> str:
    """Return the verdict as one sentence, with the factors' shapes."""
    found = run_evidence(fit, record)
    count = len(fit.factors_)
    shapes = shapes_in_words(fit.factors_)
    if found.verdict == "product":
        return f"A product of {_numeral(count)} independent factors: {shapes}."
    if found.verdict == "none":
        return NO_PRODUCT[found.answer].format(shapes=shapes)
    # Partial means several: a single factor is no product.
    several = f"{_numeral(count)} factors were found".capitalize()
    return f"{several}, {shapes}, but not every test of a product was passed."


def shapes_in_words(factors: Sequence[Factor]) -> str:
    """Return the factors' shapes, equal ones counted: a circle and two intervals."""
    counts = Counter(factor.shape for factor in factors)
    shapes = [_plural(shape, count) for shape, count in counts.items()]
    return _listed(shapes)


def _plural(shape: str, count: int) -> str:
    """Return so many of a shape: "two circles" for "a circle" and 2."""
    # Shapes come with their article: "a circle", "an interval".
    noun = shape.partition(" ")[2]
    return shape if count == 1 else f"{_numeral(count)} {noun}s"


def _numeral(count: int) -> str:
    return NUMERALS[count] if count < len(NUMERALS) else str(count)


def about_particles(record: dict) -> list[str]:
    """Return what run.json says about samples and particles, in sentences."""
    fitted, total = record.get("n_fitted"), record.get("n_samples", 0)
    placed = []
    if fitted is not None and total > fitted:
        placed = [f"{fitted} of {total} samples were fitted, the others placed."]
        if is_of_all_views(record):
            # Places are estimated from images, for those that were fitted, too.
            placed = [f"The motions were found in {fitted} of {total} particles."]
    return [*preparation_sentences(record), *placed, *confounder_sentences(record)]


def preparation_sentences(record: dict) -> list[str]:
    """Return how images or volumes became samples; nothing for other inputs."""
    components = record.get("components")
    return [f"Samples: {components['text']}."] if components else []


def all_views_lines(record: dict) -> list[str]:
    """Return `all_views_sentences` as lines of plain text."""
    # Terminals may not have the character.
    plain = [text.replace("°", " degrees") for text in all_views_sentences(record)]
    return [fill(text, TEXT_WIDTH) for text in plain]


def all_views_sentences(record: dict) -> list[str]:
    """Return what was found in particles of all views; nothing for other inputs."""
    found = record.get("all_views")
    if found is None:
        return []
    rank = len(found.get("information", []))
    correlations = _listed([f"{r:.2f}" for r in found.get("agreement", [])[:rank]])
    sentences = [
        "Particles of all views, one coordinate for all: "
        f"{_count(rank, 'principal volume')}, on which two half sets of images agree "
        f"(correlations {correlations})."
    ]
    consistency = enumerate(found.get("consistency", []), start=1)
    each = [f"{r:.2f} on factor {f}" for f, r in consistency if r is not None]
    if each:
        sentences.append(
            "Consistency between views, the share of a motion in some views that views "
            f"far from them predict: {_listed(each)}; 1 if a coordinate means the same in "
            "all views."
        )
    return [*sentences, *_motion_sentences(found.get("motions", []))]


def volume_sentences(shown: Shown) -> list[str]:
    """Return what images say about another program's coordinates."""
    if shown.why:
        return [f"No volumes were computed along the factors: {shown.why}"]
    if shown.motions is None or not shown.motions.expected:
        return []
    found = enumerate(shown.motions.model.consistency, start=1)
    each = [f"{r:.2f} on factor {number}" for number, r in found]
    return [
        "Volumes along the factors, computed from the images and these coordinates: "
        f"those of two half sets of images correlate by {_listed(each)}. Near 0, the "
        "images show nothing of the factor."
    ]


def _motion_sentences(motions: Sequence[dict]) -> list[str]:
    """Return how surely particles are placed, and which directions tell."""
    if not motions:
        return []
    medians = [
        f"{deviation_in_words(motion['median_deviation'], motion['topology'])} on factor {number}"
        for number, motion in enumerate(motions, start=1)
    ]
    seen = [_visibility(motion, number) for number, motion in enumerate(motions, 1)]
    return [
        f"All particles are placed; the median deviation is {_listed(medians)}.",
        " ".join(seen),
    ]


def deviation_in_words(value: float, topology: str) -> str:
    """Return a deviation as people read it: degrees on a circle."""
    return f"{value:.0f}°" if topology == "circle" else f"{value:.2f}"


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


def _count(number: int, noun: str) -> str:
    return f"{_numeral(number)} {noun}{'' if number == 1 else 's'}"


def _listed(items: Sequence[str]) -> str:
    """Return items as a list in a sentence: "a, b and c"."""
    *first, last = items or ["none"]
    return f"{', '.join(first)} and {last}" if first else last


def confounder_sentences(record: dict) -> list[str]:
    """Return `warnings`, or that known properties of the particles explain nothing."""
    confounders = record.get("confounders", [])
    warned = warnings(record)
    if warned or not confounders:
        return warned
    # Each name occurs once for every factor.
    names = ", ".join(dict.fromkeys(found["name"] for found in confounders))
    return [f"No known property of the particles ({names}) explains a factor."]


def warnings(record: dict) -> list[str]:
    """Return a sentence for each factor that may be no motion."""
    confounders = record.get("confounders", [])
    meanings = [found["meaning"] for found in confounders if found["meaning"]]
    return [f"Warning: {meaning}." for meaning in meanings]
