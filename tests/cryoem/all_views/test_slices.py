"""Slices of a volume's transform are transforms of its projections."""

import numpy as np
import pytest

from manifactor.cryoem.all_views.regression import Features, likelihood, volumes_from

from .molecules import BODY, GRID, random_rotations, transforms_of, volume_of


def test_a_slice_is_the_transform_of_the_projection():
    rotations = random_rotations(20)
    exact = transforms_of(np.repeat(BODY[None], 20, axis=0), rotations).values
    sharp = GRID.sharpened(volume_of(BODY)[None])[0]
    slices = (GRID.slices(rotations) @ sharp).reshape(exact.shape)
    error = np.linalg.norm(slices - exact) / np.linalg.norm(exact)
    assert error < 0.04


def test_weights_of_the_interpolation_add_up_to_one():
    matrix = GRID.slices(random_rotations(3))
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-5)


def test_bounded_volumes_are_real_and_inside_the_ball():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((1, GRID.size)) + 1j * rng.standard_normal(GRID.size)
    bounded = GRID.bounded(noise)
    cube = bounded.reshape(3 * (GRID.side,))
    np.testing.assert_allclose(cube, cube[::-1, ::-1, ::-1].conj(), atol=1e-9)
    density = GRID.densities(bounded)[0]
    axis = np.arange(GRID.side) - GRID.half
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    # The box is half as wide as the cube.
    outside = np.sqrt(x**2 + y**2 + z**2) > GRID.radius * GRID.side / GRID.padding + 1
    # Without the highest frequencies the ball has no sharp surface.
    assert (density[outside] ** 2).sum() < 0.1 * (density**2).sum()


def test_a_volume_is_found_from_its_projections():
    images = transforms_of(np.repeat(BODY[None], 600, axis=0), random_rotations(600))
    found = volumes_from(images, Features.known(np.ones((600, 1))))[0]
    expected = volume_of(BODY)
    frequency = np.stack(np.meshgrid(*3 * (GRID.axis,), indexing="ij")).reshape(3, -1)
    distance = np.linalg.norm(frequency, axis=0)
    # The offset of an image is not used, so frequency 0 is only extrapolated.
    shown = (distance > 0) & (distance <= GRID.cut)
    product = np.vdot(found[shown], expected[shown]).real
    lengths = np.linalg.norm(found[shown]) * np.linalg.norm(expected[shown])
    assert product / lengths > 0.97


def test_the_likelihood_is_highest_at_the_true_features():
    rng = np.random.default_rng(3)
    first, second = volume_of(BODY), volume_of(-BODY)
    weights = rng.uniform(0.5, 1.5, size=(50, 2))
    rotations = random_rotations(50)
    sharp = GRID.sharpened(np.stack([first, second]))
    slices = (GRID.slices(rotations) @ sharp.T).reshape(50, -1, 2)
    images = transforms_of(np.repeat(BODY[None], 50, axis=0), rotations)
    values = np.einsum("nmf,nf->nm", slices, weights).astype(np.complex64)
    terms = likelihood(type(images)(GRID, values, rotations, box=100.0), np.stack([first, second]))
    best = np.linalg.solve(terms.quadratic, terms.linear[..., None])[..., 0]
    np.testing.assert_allclose(best, weights, rtol=1e-3)


@pytest.mark.parametrize("count", [1, 300])
def test_any_number_of_images_is_a_share_of_threads(count):
    images = transforms_of(np.repeat(BODY[None], count, axis=0), random_rotations(count))
    terms = likelihood(images, volume_of(BODY)[None])
    assert np.isfinite(terms.linear).all()
    assert terms.linear.shape == (count, 1)
