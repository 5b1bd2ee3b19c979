"""A run in words: sentences and tables for the page, and the whole report as plain text."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from manifactor.estimators import ManifoldFactorizer
from manifactor.estimators.arrays import in_pixels
from manifactor.judging.evidence import TEXT_WIDTH, WHAT_TO_DO, Evidence, percent, wrapped
from manifactor.runs.folder import run_evidence
from manifactor.runs.options import FitOptions, flags_of, in_options
from manifactor.views.sections import Section, Table, additions


def report_text(record: dict, fit: ManifoldFactorizer) -> str:
    """Return the report of a run as plain text."""
    about = describe(record, fit)
    introduction = [
        f"{record.get('command', 'run')} of {record.get('input', 'unknown input')}",
        "",
        _summary(record, fit, about),
        "",
        *_filled(about["evidence"].sentences),
        *_moved_columns(record, fit),
        *sentences(about, "samples", "preparation"),
        *_filled(about["findings"].sentences),
        *about["properties"].sentences,
    ]
    tables = [table for section in about.values() for table in section.tables if table.rows]
    texts = [table.as_text(TEXT_WIDTH) for table in tables]
    return "\n\n".join(["\n".join(introduction), *texts]) + "\n"


def found_text(record: dict, fit: ManifoldFactorizer) -> str:
    """Return verdict, factors and samples in words."""
    about = describe(record, fit)
    findings, samples = _filled(about["findings"].sentences), about_samples(about, record, fit)
    return "\n".join([_summary(record, fit, about), *findings, *samples])


def _filled(texts: Sequence[str]) -> list[str]:
    """Return sentences as lines of plain text."""
    # Terminals may not have the character.
    return [fill(text.replace("°", " degrees"), TEXT_WIDTH) for text in texts]


def _summary(record: dict, fit: ManifoldFactorizer, about: Mapping[str, Section]) -> str:
    """Return verdict and factors as lines of plain text."""
    said = [f"Verdict: {run_evidence(fit, record).summary}.", *about["verdict"].sentences]
    said += [
        f"Factor {number}: {factor.shape}, median confidence {np.median(factor.confidence):.2f}."
        for number, factor in enumerate(fit.factors_, start=1)
    ]
    # A command stays on one line, to be copied.
    return "\n".join(text if " manifactor " in text else wrapped(text) for text in said)


def describe(record: dict, fit: ManifoldFactorizer) -> dict[str, Section]:
    """Return all that is said of a result, by what it is about."""
    evidence, warnings = run_evidence(fit, record), _warnings(record)
    # Evidence speaks of parameters of the library; a report is for those who type options.
    explanation, *verdict = (
        in_options(text, flags_of(FitOptions())).replace("`choose(1)`", "--candidate 1")
        for text in (evidence.explanation, *evidence.sentences)
    )
    if warnings:
        # A factor that may be no motion is not to be used yet.
        verdict = [text for text in verdict if not text.startswith(WHAT_TO_DO)]
        verdict.append(f"{WHAT_TO_DO}Read the warnings before you use the coordinates.")
    seconds = [(stage, f"{value:.2f}") for stage, value in fit.timings_.items()]
    by_stage = Table("Seconds of the fit, by stage", ("stage", "seconds"), seconds)
    own = [
        Section("verdict", verdict),
        Section("warnings", warnings),
        Section("samples", [_samples_sentence(record, fit)]),
        Section(
            "evidence",
            [explanation],
            [_tests_table(evidence), _leakage_table(evidence), _candidates_table(fit)],
        ),
        _properties(record),
        Section("preparation"),
        Section("findings"),
        Section("computation", tables=[_computation_table(fit)]),
        Section("choices", tables=[_choices_table(record, fit)]),
        Section("conditions", tables=[_conditions_table(record), by_stage]),
    ]
    added = [section for addition in additions() for section in addition.about(record, fit)]
    return {section.name: section for section in (*own, *added)}


def _candidates_table(fit: ManifoldFactorizer) -> Table:
    """Return what was proposed beside the result, which is its first row."""
    rows = [
        (str(k), percent(each.probability), each.model, each.shown)
        for k, each in enumerate(fit.candidates_)
    ]
    header = ("number", "right", "model", "factors")
    return Table("All that was proposed", header, rows if len(rows) > 1 else ())


def sentences(sections: Mapping[str, Section], *about: str) -> list[str]:
    """Return the sentences of some sections."""
    return [text for name in about for text in sections[name].sentences]


def about_samples(
    sections: Mapping[str, Section], record: dict, fit: ManifoldFactorizer
) -> list[str]:
    """Return the sentences on samples: how many there are, only if not all were fitted."""
    some = record.get("n_samples", 0) > len(fit.spectrum_.weights)
    return sentences(sections, "preparation", *(["samples"] if some else []), "properties")


def input_name(record: dict) -> str:
    """Return the name of the input, with the view where one was picked."""
    name = Path(record.get("input", "unknown input")).name
    # Direction of projection, in degrees.
    view = record.get("view")
    return f"{name}, seen from {view[0]:g}, {view[1]:g}" if view else name


def _moved_columns(record: dict, fit: ManifoldFactorizer) -> list[str]:
    """Return which columns of a table each factor moves; nothing for images and many columns."""
    columns = record.get("columns") or {}
    known = columns and not columns.get("image") and fit.diffusion_.points is not None
    if not known or fit.n_features_in_ > 64:
        return []
    return [wrapped(str(fit.loadings(column_names=columns["names"])))]


def _samples_sentence(record: dict, fit: ManifoldFactorizer) -> str:
    """Return how many samples there are, and how many were fitted."""
    fitted = len(fit.spectrum_.weights)
    total = record.get("n_samples", fitted)
    if fitted == total:
        return f"{total:,} samples, all of them fitted."
    return f"{total:,} samples: {fitted:,} were fitted, the others placed beside them."


def factor_probability(record: dict, fit: ManifoldFactorizer, f: int) -> str:
    """Return how often such a factor is right; "" where that is not known."""
    share = "".join(map(percent, run_evidence(fit, record).probabilities[f : f + 1]))
    return f"Right in {share} of such results." if share else ""


def _warnings(record: dict) -> list[str]:
    """Return a sentence for each factor that may be no motion."""
    meanings = [found["meaning"] for found in record.get("confounders", [])]
    return [f"Warning: {meaning}." for meaning in meanings if meaning]


# Tables, for the page and as plain text.


def _tests_table(evidence: Evidence) -> Table:
    """Return the tests behind the verdict, those that failed first."""
    # The order is stable: otherwise that in which they were judged.
    tests = sorted(evidence.tests, key=lambda test: test.passed)
    rows = []
    for test in tests:
        # The test compares the value less its noise.
        noise = f" (noise {_number(test.noise)})" if np.isfinite(test.noise) else ""
        # In words: colours alone are lost in print and on the colour-blind.
        result = "passed" if test.passed else "failed"
        rows.append((test.name, result, _number(test.value) + noise, test.rule, test.meaning))
    header = ("test", "result", "value", "needed", "what it measures")
    return Table("Tests behind the verdict", header, rows, kind="tests", tests=tests)


def _number(value: float) -> str:
    """Return a measured number: a count, or a share to three digits."""
    # A value that could not be measured fails its test.
    if np.isnan(value):
        return "not measured"
    if value == round(value):
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) >= 0.001 else f"{value:.1g}"


def _leakage_table(evidence: Evidence) -> Table:
    """Return how well the coordinate on each factor predicts the others; empty for one."""
    names = [f"factor {number}" for number in range(1, len(evidence.leakage) + 1)]
    rows = [
        # A factor says nothing about itself.
        (name, *("" if np.isnan(r2) else f"{r2:.2f}" for r2 in row))
        for name, row in zip(names, evidence.leakage, strict=True)
    ]
    caption = "Leakage: R^2 with which the coordinate on one factor (row) predicts another"
    return Table(caption, ("", *names), rows if len(rows) > 1 else [])


def _computation_table(fit: ManifoldFactorizer) -> Table:
    """Return how well the computation went."""
    residuals = fit.spectrum_.residuals
    typical, worst = np.median(residuals), residuals.max()
    sizes = np.bincount(fit.components_)
    # Precomputed neighbours cannot be checked.
    known = np.isfinite(fit.recall_)
    rows = [
        ("residuals of the eigenfunctions", f"median {typical:.1e}, at most {worst:.1e}"),
        ("neighbours found", f"{fit.recall_:.2%} of the true ones" if known else "as given"),
        ("outliers", f"{int(fit.outliers_.sum()):,} of {len(fit.outliers_):,}"),
        ("pieces of the neighbour graph", f"{len(sizes)}, the largest of {sizes.max():,} samples"),
    ]
    # Numbers of the evidence that no test judges, where they are measured.
    noise = "noise of the indivisibility score q (0: eigenfunctions divide, 1: they do not)"
    unjudged = {
        noise: fit.evidence_.null,
        "p-value of independent coordinates": fit.evidence_.dependence,
    }
    rows += [(name, f"{value:.3f}") for name, value in unjudged.items() if np.isfinite(value)]
    return Table("Computation", ("what", "value"), rows)


def _properties(record: dict) -> Section:
    """Return how much of each factor known properties of the particles explain."""
    found = record.get("confounders", [])
    cells = {}
    for one in found:
        # Groups have no imbalance, nor have runs of earlier releases.
        value = one.get("imbalance")
        imbalance = "" if value is None else f", imbalance {value:.2f}"
        cells[one["name"], one["factor"]] = f"{one['r2']:.2f} (p {one['p']:.2f}{imbalance})"
    # In order of appearance, each once.
    names, numbers = (dict.fromkeys(one[key] for one in found) for key in ("name", "factor"))
    rows = [(name, *(cells.get((name, number), "") for number in numbers)) for name in names]
    # Number 0 stands for what the factors leave unexplained.
    columns = [f"factor {number}" if number else "the rest" for number in numbers]
    caption = (
        "Confounders: R^2 with which a property of the particles predicts a factor, and the "
        "information imbalance from the factor to it (1: the factor tells nothing of it)"
    )
    said = _warnings(record)
    if names and not said:
        said = [f"No known property of the particles ({', '.join(names)}) explains a factor."]
    return Section("properties", said, [Table(caption, ("property", *columns), rows)])


def _choices_table(record: dict, fit: ManifoldFactorizer) -> Table:
    """Return what was chosen, and why; a fit alone knows the choices of the factorizer."""
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
