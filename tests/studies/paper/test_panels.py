from dataclasses import replace

import numpy as np

from studies.paper.panels import PanelSettings, latent, lowest_functions


def test_functions_are_compared_with_the_factor_they_were_found_for(torus_found):
    for true in range(2):
        lowest = lowest_functions(torus_found, true)
        assert (lowest.r2[:2] > 0.9).all()
        own = torus_found.factors[torus_found.matching(true)]
        np.testing.assert_array_equal(lowest.functions, own.functions[:, :5])


def test_the_settings_say_how_many_are_shown_and_what_is_pure(torus_found):
    strict = PanelSettings(n_functions=2, pure_r2=1.1)
    lowest = lowest_functions(torus_found, 0, settings=strict)
    assert lowest.words == "0 of 2"
    lax = PanelSettings(n_functions=2, pure_r2=0.0)
    assert lowest_functions(torus_found, 0, settings=lax).words == "2 of 2"


def test_a_factor_that_was_not_found_has_no_functions(torus_found):
    half = replace(torus_found, places=torus_found.places[:1])
    missing = next(true for true in range(2) if half.matching(true) is None)
    lowest = lowest_functions(half, missing)
    assert lowest.functions.shape == (800, 0)
    assert lowest.words == "0 of 0"


def test_a_circle_has_an_angle_in_degrees_and_an_interval_its_coordinate():
    angles = np.radians([0, 90, 270])
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    np.testing.assert_allclose(latent(ring), [0, 90, 270])
    np.testing.assert_array_equal(latent(np.array([[0.5], [2.0]])), [0.5, 2.0])
