"""Figures and tables of the paper, and the functions that make them."""

from functools import partial
from operator import attrgetter

import numpy as np
import pytest

from manifactor import DiffusionMap, datasets
from manifactor.runs.options import FitOptions
from studies.paper import textbook
from studies.paper.cases import BEYOND, CASES
from studies.paper.fig5 import CUT_SHAPES
from studies.paper.finding import found_in_images
from studies.paper.pairs import best_similarities
from studies.paper.panels import lowest_functions
from studies.paper.rates import in_words, table_of

from ..conftest import box_spectrum

pytestmark = pytest.mark.nightly

# Data sets, and what is found in them.


@pytest.mark.parametrize("case", [*CASES.values(), *BEYOND.values()], ids=attrgetter("name"))
def test_every_data_set_is_drawn_with_its_factors(case):
    data = case.draw(12, 0)
    assert len(data.samples) == 12
    assert np.isfinite(data.samples).all()
    assert len(data.truth) == case.n_factors
    assert all(len(true) == 12 for true in data.truth)
    if case.name == "molecule_low":  # images become components of unit variance
        assert data.samples.shape == (12, 4)
        assert data.samples.std(axis=0) == pytest.approx(1)


def test_images_are_fitted_in_part_and_functions_belong_to_the_fitted_ones(monkeypatch):
    options = partial(FitOptions, sense="geometry")  # other senses only take longer
    monkeypatch.setattr("studies.paper.finding.FitOptions", options)
    found = found_in_images(CASES["molecule_low"].draw(300, 0), 0, n_fitted=250)
    assert len(found.rows) == 250
    assert len(found.places[0]) == len(found.truth[0]) == len(found.samples) == 300
    for true in range(2):
        # Over other rows it would be 0.
        assert lowest_functions(found, true).r2[0] > 0.9
    assert found.numbers["own"] > 0.9
    assert found.images.shape[0] == 3


# The paper's algorithm, as a textbook has it, and its scores of pairs.


def test_the_textbook_pipeline_finds_the_same_spectrum_in_the_papers_units():
    X, _ = datasets.sample("rectangle", 400, random_state=0)
    quarter, functions = textbook.diffusion_map(X, 0.1, 8, seed=0)
    dense = DiffusionMap(8, n_neighbors="all", bandwidth=0.1, density_correction=0)
    spectrum = dense.fit(X).spectrum_
    # Ours also knows that a walk may stay where it is.
    np.testing.assert_allclose(4 * quarter, spectrum.eigenvalues, rtol=0.05, atol=1e-6)
    for k in range(8):
        cosine = textbook.cosine(functions[:, k], spectrum.functions[:, k])
        assert round(cosine, 2) == 1


def test_exact_products_are_found_by_the_textbook_and_have_a_similarity_of_one():
    spectrum, waves = box_spectrum([1.3, 1.0], 12, n_samples=4000)
    products = textbook.algorithm_1(spectrum.eigenvalues, spectrum.functions, 0.01, 0.9)
    of_both = [k for k in range(3, 12) if waves[k].all()]
    assert set(of_both) <= set(products)
    for k in of_both:
        assert (waves[products[k]].sum(axis=0) == waves[k]).all()
    best = best_similarities(spectrum, 1e-6)
    assert best[np.array(of_both) - 3] == pytest.approx(1)
    assert (best <= best_similarities(spectrum, np.inf)).all()


# Sections: what their words, tables and pictures say is what was measured.


def test_words_and_tables_agree_with_the_numbers(made):
    section = made("fig4")
    panels = section.numbers["panels"]
    assert [row[0] for row in section.tables[0].rows] == [str(p["k"]) for p in panels]
    assert section.text[0].startswith(f"Of {len(panels)} true products")
    section = made("fig5")
    assert list(section.numbers) == list(CUT_SHAPES)
    best = section.numbers["torus"]["best_similarity"]
    assert f"Torus: {(best > 0.6).sum()} of {len(best)} functions pass" in section.text[1]
    section = made("fig6")
    own, other = section.numbers["torus"][0]["published"]
    assert section.tables[0].rows[4][2] == f"{own:.2f} / {other:.2f}"
    assert f"large circle of the torus ({own:.2f} of it" in section.text[1]
    section = made("fig7")
    assert [row[0] for row in section.tables[0].rows] == list(section.numbers)
    assert {"three at once (Max-k-Cut)", "default"} <= set(section.numbers)


# Rates and seconds.

SOLVED = {"solved": True, "own": 1.0, "leak": 0.0, "completeness": 1.0, "functions": [2, 4]}
SOLVED |= {"pure_functions": 0.5, "verdict": "product"}
FAILED = {**SOLVED, "solved": False, "own": 0.5, "leak": 0.3, "verdict": "none"}
FAILED |= {"completeness": np.nan}


def test_rates_count_what_was_solved_by_case_and_method():
    records = {("torus", "published"): [SOLVED, FAILED], ("torus", "default"): [SOLVED, SOLVED]}
    words = "Published: solved in 1 of 2 runs; not always: torus (1 of 2)."
    assert in_words("published", CASES, records) == words
    assert in_words("default", CASES, records) == "Default: solved in 2 of 2 runs."
    mixed, right = (" ".join(row) for row in table_of(CASES, records, "").rows)
    assert mixed == "torus published 1 of 2 0.750 0.150 1.00 3.0 50% 1 / 0 / 0 / 0 / 1"
    assert right == "torus default 2 of 2 1.000 0.000 1.00 3.0 50% 2 / 0 / 0 / 0 / 0"
