"""A run in words: sentences and tables for the page, and the whole report as plain text."""

import re
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from manifactor._support.errors import listed
from manifactor.cryoem.all_views.shown import Shown
from manifactor.cryoem.all_views.volumes import is_of_all_views
from manifactor.estimators import ManifoldFactorizer
from manifactor.estimators.arrays import in_pixels
from manifactor.judging.evidence import TEXT_WIDTH, WHAT_TO_DO, numeral, percent, wrapped
from manifactor.judging.table import Test
from manifactor.runs.folder import run_evidence
from manifactor.views.sections import Table


def report_text(record: dict, fit: ManifoldFactorizer) -> str:
    """Return the report of a run as plain text."""
    command = record.get("command", "run")
    introduction = [
        f"{command} of {record.get('input', 'unknown input')}",
        "",
        summary(record, fit),
        "",
        fill(explanation(record, fit), TEXT_WIDTH),
        *moved_columns(record, fit),
        samples_sentence(record, fit),
        *preparation_sentences(record),
        *all_views_lines(record),
        *confounder_sentences(record),
    ]
    # What there is nothing to say about is left out.
    shown = run_tables(record, fit).values()
    texts = [table.as_text(TEXT_WIDTH) for table in shown if table.rows]
    return "\n\n".join(["\n".join(introduction), *texts]) + "\n"


def summary(record: dict, fit: ManifoldFactorizer) -> str:
    """Return verdict and factors in words."""
    said = [f"Verdict: {run_evidence(fit, record).summary}.", *verdict(record, fit)]
    factors = [
        f"Factor {number}: {factor.shape}, median confidence {np.median(factor.confidence):.2f}."
        for number, factor in enumerate(fit.factors_, start=1)
    ]
    # A command stays on one line, to be copied.
    lines = (text if " manifactor " in text else wrapped(text) for text in (*said, *factors))
    return "\n".join(lines)


def verdict(record: dict, fit: ManifoldFactorizer) -> list[str]:
    """Return the verdict in three sentences, for those who type commands."""
    said = [_with_options(text) for text in run_evidence(fit, record).sentences]
    if not warnings(record):
        return said
    # A factor that may be no motion is not to be used yet.
    said = [text for text in said if not text.startswith(WHAT_TO_DO)]
    return [*said, f"{WHAT_TO_DO}Read the warnings before you use the coordinates."]


def explanation(record: dict, fit: ManifoldFactorizer) -> str:
    """Return the tests and numbers behind the verdict, for those who type commands."""
    return _with_options(run_evidence(fit, record).explanation)


def _with_options(text: str) -> str:
    """Return a text with options of the command in place of parameters."""
    # The evidence speaks of parameters, as for those who write Python; attributes end in "_".
    return re.sub(r"`(\w*[^\W_])`", lambda name: "--" + name[1].replace("_", "-"), text)


def input_name(record: dict) -> str:
    """Return the name of the input, with the view where one was picked."""
    name = Path(record.get("input", "unknown input")).name
    # Direction of projection, in degrees.
    view = record.get("view")
    return f"{name}, seen from {view[0]:g}, {view[1]:g}" if view else name


def moved_columns(record: dict, fit: ManifoldFactorizer) -> list[str]:
    """Return which columns of a table each factor moves; nothing for images and many columns."""
    columns = record.get("columns") or {}
    known = columns and not columns.get("image") and fit.diffusion_.points is not None
    if not known or fit.n_features_in_ > 64:
        return []
    return [wrapped(str(fit.loadings(column_names=columns["names"])))]


def samples_sentence(record: dict, fit: ManifoldFactorizer) -> str:
    """Return how many samples there are, and how many were fitted."""
    fitted = len(fit.spectrum_.weights)
    total = record.get("n_samples", fitted)
    if is_of_all_views(record):
        return f"{total:,} particles, all placed; the motions were found in {fitted:,}."
    if fitted == total:
        return f"{total:,} samples, all of them fitted."
    return f"{total:,} samples: {fitted:,} were fitted, the others placed beside them."


def factor_probability(record: dict, fit: ManifoldFactorizer, f: int) -> str:
    """Return how often such a factor is right; "" where that is not known."""
    share = "".join(map(percent, run_evidence(fit, record).probabilities[f : f + 1]))
    return f"Right in {share} of such results." if share else ""


def about_samples(record: dict, fit: ManifoldFactorizer) -> list[str]:
    """Return sentences about samples, if not all were fitted, and about particles."""
    some = record.get("n_samples", 0) > len(fit.spectrum_.weights)
    placed = [samples_sentence(record, fit)] if some else []
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
    correlations = listed([f"{r:.2f}" for r in found.get("agreement", [])[:rank]])
    sentences = [
        "Particles of all views, one coordinate for all: "
        f"{numeral(rank)} principal volume{'' if rank == 1 else 's'}, on which two half sets of "
        f"images agree (correlations {correlations})."
    ]
    consistency = enumerate(found.get("consistency", []), start=1)
    each = [f"{r:.2f} on factor {f}" for f, r in consistency if r is not None]
    if each:
        sentences.append(
            "Consistency between views, the share of a motion in some views that views far from "
            f"them predict: {listed(each)}; 1 if a coordinate means the same in all views."
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
        f"those of two half sets of images correlate by {listed(each)}. Near 0, the "
        "images show nothing of the factor."
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
    meanings = [found["meaning"] for found in record.get("confounders", [])]
    return [f"Warning: {meaning}." for meaning in meanings if meaning]


# Tables, for the page and as plain text.


def run_tables(record: dict, fit: ManifoldFactorizer) -> dict[str, Table]:
    """Return all tables of a run by name; those with nothing to say have no rows."""
    return {
        "tests": tests_table(record, fit),
        "leakage": leakage_table(fit),
        "confounders": confounders_table(record),
        "components": _components_table(record),
        "computation": _computation_table(fit),
        "choices": choices_table(record, fit),
        "conditions": _conditions_table(record),
        "seconds": Table(
            "Seconds of the fit, by stage",
            ("stage", "seconds"),
            [(stage, f"{value:.2f}") for stage, value in fit.timings_.items()],
        ),
    }


def tests_table(record: dict, fit: ManifoldFactorizer) -> Table:
    """Return the tests behind the verdict, those that failed first."""
    # The order is stable: otherwise that in which they were judged.
    tests = sorted(run_evidence(fit, record).tests, key=lambda test: test.passed)
    return Table(
        "Tests behind the verdict",
        ("test", "result", "value", "needed", "what it measures"),
        [_test_row(test) for test in tests],
        kind="tests",
        marked=[row for row, test in enumerate(tests) if not test.passed],
        tests=tests,
    )


def _test_row(test: Test) -> tuple[str, ...]:
    value = _number(test.value)
    # The test compares the value less its noise.
    if np.isfinite(test.noise):
        value += f" (noise {_number(test.noise)})"
    # In words: colours alone are lost in print and on the colour-blind.
    result = "passed" if test.passed else "failed"
    return test.name, result, value, test.rule, test.meaning


def _number(value: float) -> str:
    """Return a measured number: a count, or a share to three digits."""
    # A value that could not be measured fails its test.
    if np.isnan(value):
        return "not measured"
    if value == round(value):
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) >= 0.001 else f"{value:.1g}"


def leakage_table(fit: ManifoldFactorizer) -> Table:
    """Return how well the coordinate on each factor predicts the others; empty for one."""
    leakage = fit.evidence_.leakage
    names = [f"factor {number}" for number in range(1, len(leakage) + 1)]
    rows = [
        # A factor says nothing about itself.
        (name, *("" if np.isnan(r2) else f"{r2:.2f}" for r2 in row))
        for name, row in zip(names, leakage, strict=True)
    ]
    caption = "Leakage: R^2 with which the coordinate on one factor (row) predicts another"
    return Table(caption, ("", *names), rows if len(rows) > 1 else [])


def _computation_table(fit: ManifoldFactorizer) -> Table:
    """Return how well the computation went."""
    residuals = fit.spectrum_.residuals
    sizes = np.bincount(fit.components_)
    # Precomputed neighbours cannot be checked.
    known = np.isfinite(fit.recall_)
    rows = [
        (
            "residuals of the eigenfunctions",
            f"median {np.median(residuals):.1e}, at most {residuals.max():.1e}",
        ),
        ("neighbours found", f"{fit.recall_:.2%} of the true ones" if known else "as given"),
        ("outliers", f"{int(fit.outliers_.sum()):,} of {len(fit.outliers_):,}"),
        ("pieces of the neighbour graph", f"{len(sizes)}, the largest of {sizes.max():,} samples"),
    ]
    # Numbers of the evidence that no test judges, where they are measured.
    unjudged = {
        "noise of the indivisibility score q (0: eigenfunctions divide, 1: they do not)": (
            fit.evidence_.null
        ),
        "p-value of independent coordinates": fit.evidence_.dependence,
    }
    rows += [(name, f"{value:.3f}") for name, value in unjudged.items() if np.isfinite(value)]
    return Table("Computation", ("what", "value"), rows)


def _components_table(record: dict) -> Table:
    """Return signal to noise of the principal components of images or volumes."""
    components = record.get("components", {})
    pairs = zip(components.get("signal_to_noise", ()), components.get("weights", ()), strict=False)
    rows = [
        (str(number), f"{ratio:.3g}", f"{weight:.2f}")
        for number, (ratio, weight) in enumerate(pairs, start=1)
    ]
    header = ("component", "signal to noise", "weight")
    return Table("Principal components of the images or volumes", header, rows)


def confounders_table(record: dict) -> Table:
    """Return how much of each factor known properties of the particles explain."""
    found = record.get("confounders", [])
    cells = {
        (each["name"], each["factor"]): f"{each['r2']:.2f} (p {each['p']:.2f}{_imbalance(each)})"
        for each in found
    }
    # In order of appearance, each once.
    names, numbers = (dict.fromkeys(each[key] for each in found) for key in ("name", "factor"))
    rows = [(name, *(cells.get((name, number), "") for number in numbers)) for name in names]
    # Number 0 stands for what the factors leave unexplained.
    columns = [f"factor {number}" if number else "the rest" for number in numbers]
    caption = (
        "Confounders: R^2 with which a property of the particles predicts a factor, and the "
        "information imbalance from the factor to it (1: the factor tells nothing of it)"
    )
    return Table(caption, ("property", *columns), rows)


def _imbalance(confounder: dict) -> str:
    # Groups have none, nor have runs of earlier releases.
    value = confounder.get("imbalance")
    return "" if value is None else f", imbalance {value:.2f}"


def choices_table(record: dict, fit: ManifoldFactorizer) -> Table:
    """Return what was chosen, and why.

    A run's record has all choices; a fit alone knows those of the factorizer.
    """
    chosen = record.get("choices")
    if chosen is None:
        chosen = {name: vars(choice) for name, choice in fit.choices_.items()}
    rows = [
        (name, value_in_words(choice.get("value")), choice["why"])
        for name, choice in chosen.items()
    ]
    header = ("choice", "value", "why")
    return Table("What was chosen, and why", header, rows, kind="choices")


def value_in_words(value: Any) -> str:
    """Return the value of a choice as people read it."""
    if value is None:
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _conditions_table(record: dict) -> Table:
    """Return what the result of a run depends on: input, seed, versions."""
    columns = record.get("columns")
    known = {
        "input": record.get("input", "unknown"),
        # Arrays that were fitted in memory have neither.
        "input last changed": record.get("input_changed"),
        "particles": record.get("particles"),
        "columns": columns and _columns_in_words(columns),
        "seed": record.get("seed", "unknown"),
        **record.get("versions", {}),
    }
    rows = [(name, str(value)) for name, value in known.items() if value is not None]
    header = ("what", "value")
    return Table("What the result depends on", header, rows, kind="conditions")


def _columns_in_words(columns: dict) -> str:
    """Return which columns of a table were fitted, and whether they were scaled."""
    numbers, total = columns["numbers"], columns["total"]
    text = f"all {total}"
    if numbers is not None:
        labels = [str(label) for label in columns["names"] or numbers]
        # A table may have thousands.
        shown = [*labels[:12], "..."] if len(labels) > 12 else labels
        text = f"{len(numbers)} of {total}: {', '.join(shown)}"
    if columns.get("image"):
        text += f" (images of {in_pixels(columns['image'])})"
    return text if columns["scale"] is None else f"{text}; each to unit variance"
