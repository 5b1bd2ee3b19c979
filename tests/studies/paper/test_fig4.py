from dataclasses import replace

import numpy as np
import pytest

from manifactor.scores import column_r2
from studies.paper.cases import CASES
from studies.paper.fig4 import Fig4Settings, across_factors, best_pair, fig4, product_functions
from studies.paper.pairs import best_similarities, pair_scores


def test_the_best_pair_lies_within_delta(torus_found):
    case = replace(CASES["torus"], delta=0.05)
    panel = best_pair(torus_found, case, 12)
    scores = pair_scores(torus_found.spectrum, 12)
    inside = scores.error < 0.05
    assert panel.similarity == scores.similarity[inside].max() >= panel.second
    assert panel.error < 0.05
    assert panel.pair.tolist() in scores.pairs[inside].tolist()
    limited = best_similarities(torus_found.spectrum, 0.05)
    assert limited[12 - 3] == panel.similarity
    assert (limited <= best_similarities(torus_found.spectrum, np.inf)).all()


def test_the_first_function_with_a_pair_has_no_second_and_none_passes_no_delta(torus_found):
    case = CASES["torus"]
    first = best_pair(torus_found, replace(case, delta=1e3), 3)
    assert (first.pair.tolist(), first.second) == ([1, 2], 0.0)
    assert best_pair(torus_found, replace(case, delta=1e-12), 9).pair is None


def test_products_and_functions_of_one_factor_are_told_by_the_truth(torus_found):
    products = product_functions(torus_found)
    assert products == sorted(set(products))
    for k in products:
        function = torus_found.spectrum.functions[:, [k]]
        assert all(column_r2(true, function)[0] < 0.5 for true in torus_found.truth)
    large, _ = (torus_found.matching(true) for true in range(2))
    pure = torus_found.factors[large].coefficients[:, 0].argmax()
    assert not across_factors(torus_found, np.array([products[0], pure]))


def test_a_function_of_each_circle_is_a_pair_across_factors(torus_found):
    r2 = [column_r2(true, torus_found.spectrum.functions[:, :9]) for true in torus_found.truth]
    pair = np.array([1 + r2[0][1:].argmax(), 1 + r2[1][1:].argmax()])
    assert across_factors(torus_found, pair)
    assert not across_factors(torus_found, pair, pure_r2=1.1)


@pytest.mark.slow
def test_panels_words_and_table_agree(small, rectangles):
    section = fig4(small, rectangles, recipe=Fig4Settings(n_panels=3))
    panels = section.numbers["panels"]
    assert 1 <= len(panels) <= 3
    assert [row[0] for row in section.tables[0].rows] == [str(p["k"]) for p in panels]
    assert section.text[0].startswith(f"Of {len(panels)} true products")
