"""Places of particles of all views in the coordinates of the factors."""

from types import SimpleNamespace

import numpy as np

from manifactor.cryoem.all_views.fitting import places_of


def found(topology, coordinate, places):
    """What was found of one motion: samples fitted, and particles placed."""
    factor = SimpleNamespace(topology=topology, coordinate=coordinate)
    deviations = np.full((len(places), 1), 0.02)
    placed = SimpleNamespace(places=places[:, None], deviations=deviations)
    return SimpleNamespace(fit=SimpleNamespace(factors_=(factor,)), placed=placed)


EVEN = (np.arange(2000) + 0.5) / 2000


def test_deviations_keep_their_size_at_the_ends_of_an_interval():
    (place,) = places_of(found("interval", EVEN, EVEN))
    np.testing.assert_allclose(place.coordinate, EVEN, atol=0.002)
    np.testing.assert_allclose(place.deviation, 0.02, rtol=0.02)


def test_uneven_places_get_coordinates_as_even_as_those_fitted():
    (place,) = places_of(found("interval", EVEN, EVEN**2))
    counts = np.histogram(place.coordinate, 10, (0, 1))[0]
    np.testing.assert_allclose(counts, 200, atol=5)


def test_a_circle_keeps_its_angles():
    (place,) = places_of(found("circle", 2 * np.pi * EVEN, EVEN))
    np.testing.assert_allclose(place.coordinate, 2 * np.pi * EVEN, atol=0.01)
    np.testing.assert_allclose(place.deviation, 2 * np.pi * 0.02, rtol=0.02)
