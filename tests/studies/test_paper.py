"""Figures and tables of the paper, and the functions that make them."""

from dataclasses import replace
from functools import partial
from operator import attrgetter

import numpy as np
import pytest

from manifactor import DiffusionMap, datasets
from manifactor.runs.options import FitOptions
from manifactor.scores import column_r2
from studies.paper import textbook
from studies.paper.beyond import BEYOND_METHODS, angle_error, joint_angles
from studies.paper.cases import BEYOND, CASES, Data
from studies.paper.fig1 import Fig1Settings, cosines, lowest_modes
from studies.paper.fig2 import NOISY, Fig2Settings, sides_of
from studies.paper.fig3 import MOLECULES, THREE_MOTIONS, TWO_MOTIONS, motions_of
from studies.paper.fig4 import across_factors, best_pair, product_functions
from studies.paper.fig5 import CUT_SHAPES, between_groups
from studies.paper.fig6 import embeddings
from studies.paper.fig7 import pure_share, side_shares
from studies.paper.finding import WAYS, found_in_images
from studies.paper.pairs import best_similarities, pair_scores
from studies.paper.panels import PanelSettings, latent, lowest_functions
from studies.paper.rates import by_label, in_words, measured, table_of
from studies.paper.table1 import PAPER_SECONDS

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


def test_three_factors_of_a_sheet_and_a_circle_are_compared_with_both_stretches():
    data = CASES["molecule_xy"].draw(8, 0)
    assert [t.shape[1] for t in data.truth_for(2)] == [2, 2]
    assert [t.shape[1] for t in data.truth_for(3)] == [2, 1, 1]
    plain = Data(np.zeros((3, 2)), (np.zeros((3, 2)), np.zeros((3, 2))))
    assert [t.shape[1] for t in plain.truth_for(3)] == [2, 2]


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


def test_a_true_factor_that_was_not_found_counts_as_nothing(torus_found):
    half = replace(torus_found, places=torus_found.places[:1], factors=torus_found.factors[:1])
    matched = [half.matching(true) for true in range(2)]
    assert sorted(matched, key=str) == [0, None]
    assert half.numbers["own"] == half.score.own / 2
    assert not half.numbers["solved"]
    assert torus_found.numbers["solved"]
    missing = matched.index(None)
    lowest = lowest_functions(half, missing)
    assert lowest.functions.shape == (800, 0)
    assert lowest.words == "0 of 0"
    shown = embeddings(half, torus_found, 0)
    hidden = [ways["published"] for ways in shown if ways["published"].values is None]
    assert [one.r2 for one in hidden] == [[0.0, 0.0]]


def test_functions_are_compared_with_the_factor_they_were_found_for(torus_found):
    for true in range(2):
        lowest = lowest_functions(torus_found, true)
        assert (lowest.r2[:2] > 0.9).all()
        own = torus_found.factors[torus_found.matching(true)]
        np.testing.assert_array_equal(lowest.functions, own.functions[:, :5])
    # Settings say how many are shown, and what is pure.
    for pure_r2, words in ((1.1, "0 of 2"), (0.0, "2 of 2")):
        settings = PanelSettings(n_functions=2, pure_r2=pure_r2)
        assert lowest_functions(torus_found, 0, settings=settings).words == words


def ring(angle):
    return np.column_stack([np.cos(angle), np.sin(angle)])


def test_a_circle_has_an_angle_in_degrees_and_an_interval_its_coordinate():
    np.testing.assert_allclose(latent(ring(np.radians([0, 90, 270]))), [0, 90, 270])
    np.testing.assert_array_equal(latent(np.array([[0.5], [2.0]])), [0.5, 2.0])


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


def test_scores_of_pairs_are_those_of_their_products():
    spectrum, _ = box_spectrum([1.3, 1.0], 12, n_samples=400)
    scores = pair_scores(spectrum, 9)
    assert len(scores.pairs) == 8 * 7 / 2
    root = np.sqrt(spectrum.weights)
    rows = zip(scores.similarity, scores.error, scores.pairs, strict=True)
    for similarity, error, (i, j) in rows:
        product = spectrum.functions[:, i] * spectrum.functions[:, j]
        cosine = textbook.cosine(root * product, root * spectrum.functions[:, 9])
        assert similarity == pytest.approx(cosine)
        sum_of_both = spectrum.eigenvalues[i] + spectrum.eigenvalues[j]
        assert error == pytest.approx(abs(sum_of_both - spectrum.eigenvalues[9]) / 4)


# Figure 1.


def test_modes_of_the_rectangle_are_in_the_order_of_its_exact_eigenvalues(rng):
    exact = datasets.exact_eigenvalues("rectangle", 13)[1:]
    waves = lowest_modes(12) / np.array(Fig1Settings.sides)
    np.testing.assert_allclose(np.pi**2 * (waves**2).sum(axis=1), exact)
    # The cosine of a function with itself is one under any weights.
    functions, weights = rng.normal(size=(50, 3)), rng.uniform(size=50)
    assert cosines(functions, -2 * functions, weights) == pytest.approx([-1] * 3)


# Sections: what their words, tables and pictures say is what was measured.


@pytest.mark.parametrize(
    ("name", "cases", "said"),
    [
        ("fig2", NOISY, lambda r2: f"Default: {(r2 >= 0.9).sum()} of {len(r2)} functions"),
        ("fig3", MOLECULES, lambda own: f"Default: R^2 {own:.3f} own"),
    ],
)
def test_every_case_is_drawn_with_its_numbers(made, name, cases, said):
    section = made(name)
    assert list(section.numbers) == list(cases)
    assert [picture.name for picture in section.pictures] == [f"{name}-{case}" for case in cases]
    # The samples, and two functions of two factors by two methods.
    assert len(section.pictures[0].figure.get_axes()) == 1 + 4 * 2
    default = section.numbers[next(iter(cases))]["default"]
    assert said(default["function_r2"][0] if name == "fig2" else default["own"]) in section.text[0]


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


def test_computed_functions_are_like_the_analytic_ones(made):
    assert min(made("fig1").numbers["cosine"][:2]) > 0.9


# Figures 2 and 3.


def test_functions_of_the_truth_alone_do_not_depend_on_the_noise(lab):
    found = lab.found["rectangle_z", "default"]
    flat = replace(found, samples=np.hstack(found.truth))
    assert sides_of(flat).of_noise == 0
    everything = sides_of(flat, Fig2Settings(noise_gain=-1.0))
    assert everything.of_noise == sum(len(side.r2) for side in everything.lowest)


def test_two_stretches_are_one_motion_or_two(lab):
    found = lab.found["torus", "default"]
    assert tuple(motions_of(found).lowest) == TWO_MOTIONS
    turn, stretch = found.truth
    apart = replace(found, truth=(turn, *np.hsplit(stretch, 2)))
    assert tuple(motions_of(apart).lowest) == THREE_MOTIONS


# Figure 4.


def test_the_best_pair_lies_within_delta(torus_found):
    case = CASES["torus"]
    panel = best_pair(torus_found, replace(case, delta=0.05), 12)
    scores = pair_scores(torus_found.spectrum, 12)
    inside = scores.error < 0.05
    assert panel.similarity == scores.similarity[inside].max() >= panel.second
    assert panel.error < 0.05
    assert panel.pair.tolist() in scores.pairs[inside].tolist()
    limited = best_similarities(torus_found.spectrum, 0.05)
    assert limited[12 - 3] == panel.similarity
    # The first function with a pair has no second, and none passes no delta.
    first = best_pair(torus_found, replace(case, delta=1e3), 3)
    assert (first.pair.tolist(), first.second) == ([1, 2], 0.0)
    assert best_pair(torus_found, replace(case, delta=1e-12), 9).pair is None


def test_products_and_functions_of_one_factor_are_told_by_the_truth(torus_found):
    functions = torus_found.spectrum.functions
    products = product_functions(torus_found)
    assert products == sorted(set(products))
    r2 = [column_r2(true, functions[:, [*range(9), *products]]) for true in torus_found.truth]
    assert max(map(np.max, (each[9:] for each in r2))) < 0.5
    large, _ = (torus_found.matching(true) for true in range(2))
    lowest = torus_found.factors[large].functions[:, 0]
    pure = np.abs(functions.T @ lowest).argmax()
    assert not across_factors(torus_found, np.array([products[0], pure]))
    # A function of each circle is a pair across factors.
    pair = np.array([1 + each[1:9].argmax() for each in r2])
    assert across_factors(torus_found, pair)
    assert not across_factors(torus_found, pair, pure_r2=1.1)


# Figures 5 to 7.


def test_the_share_between_groups_is_that_of_the_cut(lab):
    found = lab.found["torus", "published"]
    _, matrix = found.triplets.separability()
    across = found.cut.labels[:, None] != found.cut.labels
    assert between_groups(found) == pytest.approx(matrix[across].sum() / matrix.sum())
    assert between_groups(replace(found, cut=None)) == 0


def test_the_default_embeds_both_circles_of_a_torus(torus_found):
    for ways in embeddings(torus_found, torus_found, 0):
        own, other = ways["default"].r2
        assert own > 0.95
        assert other < 0.1
        assert ways["diffusion map"].values.shape == (800, 2)
    shares = side_shares(torus_found)
    assert [share.shape[1] for share in shares] == [2, 2]
    assert pure_share(shares) > 0.9
    assert pure_share(shares, pure_r2=1.1) == 0


# Shapes beyond the paper's.


def test_joint_angles_are_the_first_link_and_the_difference_of_both(torus_found, rng):
    first, second = rng.uniform(0, 2 * np.pi, size=(2, 500))
    found = replace(
        torus_found,
        truth=(ring(first), ring(second)),
        places=(ring(1 - first), ring(second + 2)),
        factors=tuple(replace(factor, topology="circle") for factor in torus_found.factors),
        rows=np.arange(500),
    )
    angles = joint_angles(found)
    for joint, true in ((1, first), (2, second - first)):
        assert angle_error(angles[joint][0], true)[1] < 1.5
    # Links that are no circles have no angles.
    intervals = tuple(replace(factor, topology="interval") for factor in torus_found.factors)
    assert joint_angles(replace(torus_found, factors=intervals)) == {}


def test_every_shape_and_method_is_in_the_table(made):
    section = made("beyond")
    assert len(section.tables[0].rows) == len(BEYOND) * len(BEYOND_METHODS)
    places, arm = section.pictures
    assert len(places.figure.get_axes()) == 2 * len(BEYOND)
    assert len(arm.figure.get_axes()[0].get_lines()) == 2


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


def test_every_data_set_method_and_seed_is_measured_once(small, lab, made):
    records = measured(["torus", "cube"], ["default"], 250, settings=small, lab=lab)
    assert list(records) == [("torus", "default"), ("cube", "default")]
    assert [run["seed"] for run in records["cube", "default"]] == list(small.seeds)
    assert list(by_label(records)) == ["torus, default", "cube, default"]
    section = made("trials")
    (table,) = section.tables
    assert len(table.rows) == len(section.numbers) == len(CASES) * len(WAYS)
    assert all(len(row) == len(table.header) for row in table.rows)
    assert "seeds 0 to 0" in section.text[0]


def test_seconds_and_triplets_are_counted_for_each_number_of_functions(made):
    section = made("table1")
    counts = section.numbers["triplets"]
    assert list(counts["ours"]) == list(counts["textbook"]) == [12, 20]
    assert 0 < counts["textbook"][20] < 18
    assert section.seconds["paper"] == PAPER_SECONDS
    (table,) = section.tables
    row = dict(zip(table.header, table.rows[1], strict=True))
    theirs, ours = section.seconds["textbook"][20], section.seconds["ours"][20]
    assert row["textbook / ours"] == f"{np.sum(theirs) / np.sum(ours):.0f}"
    assert row["diffusion map, paper"] == "-"
