import numpy as np

from manifactor import DiffusionMap, datasets
from studies.paper import textbook

from ...conftest import box_spectrum


def test_the_textbook_pipeline_finds_the_same_spectrum_in_the_papers_units():
    X, _ = datasets.sample("rectangle", 600, random_state=0)
    quarter, functions = textbook.diffusion_map(X, 0.1, 8, seed=0)
    dense = DiffusionMap(8, n_neighbors="all", bandwidth=0.1, density_correction=0)
    spectrum = dense.fit(X).spectrum_
    # Ours also knows that a walk may stay where it is.
    np.testing.assert_allclose(4 * quarter, spectrum.eigenvalues, rtol=0.05, atol=1e-6)
    for k in range(8):
        cosine = textbook.cosine(functions[:, k], spectrum.functions[:, k])
        assert round(cosine, 2) == 1


def test_the_textbook_loop_finds_exact_products():
    spectrum, waves = box_spectrum([1.3, 1.0], 12, n_samples=4000)
    products = textbook.algorithm_1(spectrum.eigenvalues, spectrum.functions, 0.01, 0.9)
    of_both = [k for k in range(2, 12) if waves[k].all()]
    assert set(of_both) <= set(products)
    for k in of_both:
        assert (waves[products[k]].sum(axis=0) == waves[k]).all()
