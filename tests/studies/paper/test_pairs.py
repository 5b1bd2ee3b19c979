import numpy as np
import pytest

from studies.paper import textbook
from studies.paper.pairs import best_similarities, pair_scores

from ...conftest import box_spectrum


def test_scores_of_pairs_are_those_of_their_products():
    spectrum, _ = box_spectrum([1.3, 1.0], 12, n_samples=400)
    scores = pair_scores(spectrum, 9)
    assert len(scores.pairs) == 8 * 7 / 2
    root = np.sqrt(spectrum.weights)
    for similarity, error, (i, j) in zip(
        scores.similarity, scores.error, scores.pairs, strict=True
    ):
        product = spectrum.functions[:, i] * spectrum.functions[:, j]
        cosine = textbook.cosine(root * product, root * spectrum.functions[:, 9])
        assert similarity == pytest.approx(cosine)
        sum_of_both = spectrum.eigenvalues[i] + spectrum.eigenvalues[j]
        gap = abs(sum_of_both - spectrum.eigenvalues[9])
        assert error == pytest.approx(gap / 4)


def test_exact_products_have_a_similarity_of_one_within_any_delta():
    spectrum, waves = box_spectrum([1.3, 1.0], 12, n_samples=4000)
    best = best_similarities(spectrum, 1e-6)
    of_both = [k for k in range(3, 12) if waves[k].all()]
    assert best[np.array(of_both) - 3] == pytest.approx(1)
    assert (best <= best_similarities(spectrum, np.inf)).all()
