from pathlib import Path

import numpy as np
import pytest

from manifactor.cryoem.files.formats import read_particles
from manifactor.cryoem.files.particles import Particles, view_directions

from ..star_files import RELION_30, RELION_31


@pytest.fixture
def read(tmp_path):
    def particles_of(text, **options):
        path = tmp_path / "particles.star"
        path.write_text(text)
        return read_particles(path, **options)

    return particles_of


IN_PIXELS = [[2, -1], [0.5, 3.25], [-4, 0], [1, 1], [0, -2.5], [0, 0]]
IN_ANGSTROM = np.array([[1.5, -2], [0, 0], [0.25, 4], [7, 1], [0.1, 0], [-3, 2.75]])
HALVES = {"half set": [1, 2, 1, 2, 2, 1]}
FIXED = {"defocus_v": [14810.5] * 6, "defocus_angle": [35.87] * 6, "voltage": [300] * 6}
FIXED |= {"spherical_aberration": [2.7] * 6, "amplitude_contrast": [0.1] * 6, **HALVES}
OF_TWO_GROUPS = {"defocus_u": (9873.2, 8000), "defocus_v": (9771.12, 7900)}
OF_TWO_GROUPS |= {"defocus_angle": (-22.4, 80.25), "phase_shift": (0, 90), "optics group": (7, 2)}
OF_TWO_GROUPS |= {"voltage": (300, 200), "spherical_aberration": (2.7, 0.01)}
OF_TWO_GROUPS |= {"amplitude_contrast": (0.1, 0.07)}


@pytest.mark.parametrize(
    ("text", "pixel_size", "shifts", "angles", "stacks", "slices", "microscope"),
    [
        # Optics in every row, shifts in pixels; 5 micrometres on the detector, magnified 37,037 times.
        (
            RELION_30,
            1.35,
            IN_PIXELS,
            {0: [-17.9541, 90, 12.5], 3: [95.25, 178.5, 0.001]},
            [f"Extract/job007/mic_{k}.mrcs" for k in "aaabbb"],
            [0, 1, 2, 11, 0, 1],
            FIXED | {"defocus_u": [15120.300781] * 2 + [15120.3] + [21010] * 3},
        ),
        # Optics groups and shifts in Angstrom.
        (
            RELION_31,
            1.244531,
            IN_ANGSTROM / 1.244531,
            {3: [-179.9, 23, 33]},
            [f"Extract/job012/m{k}.mrcs" for k in "111222"],
            [2, 0, 1, 0, 1, 2],
            {name: np.repeat(both, 3) for name, both in OF_TWO_GROUPS.items()} | HALVES,
        ),
    ],
    ids=["3.0", "3.1"],
)
def test_what_relion_writes_is_read(
    read, text, pixel_size, shifts, angles, stacks, slices, microscope
):
    particles = read(text)
    assert (len(particles), particles.uid) == (6, None)
    assert particles.pixel_size == pytest.approx(pixel_size)
    np.testing.assert_allclose(particles.shift, shifts)
    for row, expected in angles.items():
        assert particles.angles[row] == pytest.approx(expected)
    assert particles.stack.tolist() == stacks
    assert particles.slice.tolist() == slices
    assert particles.microscope.keys() == microscope.keys()
    for name, values in microscope.items():
        np.testing.assert_allclose(particles.microscope[name], values, err_msg=name)


def test_there_is_one_pixel_size_and_a_given_one_counts(read):
    given = read(RELION_31, pixel_size=2.5)
    assert given.pixel_size == 2.5
    assert given.shift == pytest.approx(IN_ANGSTROM / 2.5)
    # Less than a part in a thousand is rounding.
    assert read(RELION_31.replace("1.244531", "1.244532", 1)).pixel_size == 1.244532
    for old, new, text, message in (
        ("1.244531", "0.830000", RELION_31, "one pixel size; .* have 0.83 to 1.245 A"),
        ("37037.037037", "40000.000000", RELION_30, "have 1.25 to 1.35 A"),
    ):
        mixed = read(text.replace(old, new, 1))
        with pytest.raises(ValueError, match=message):
            _ = mixed.pixel_size


def test_what_is_no_file_of_particles_is_refused(tmp_path):
    for name, message in (("a.txt", "one of .star, .cs; got a.txt"), ("a.star", "does not exist")):
        with pytest.raises(ValueError, match=message):
            read_particles(tmp_path / name)


@pytest.mark.parametrize("chosen", [[4, 0], [False, True, True, False, False, True], slice(1, 3)])
def test_a_choice_of_particles_takes_all_that_is_known_along(read, chosen):
    particles = read(RELION_31)
    part = particles[chosen]
    assert part.path == particles.path
    assert part.rows.tolist() == np.arange(6)[chosen].tolist()
    assert len(part) == len(part.rows)
    for name in ("stack", "slice", "angles", "shift", "pixel_sizes"):
        assert np.array_equal(getattr(part, name), getattr(particles, name)[chosen])
    assert set(part.microscope) == set(particles.microscope)
    for name, values in particles.microscope.items():
        assert np.array_equal(part.microscope[name], values[chosen])


def seen_from(angles):
    angles = np.array(angles, dtype=float)
    return Particles(Path("a.star"), np.arange(len(angles)), angles=angles)


def test_rot_turns_an_image_that_is_seen_along_the_axis():
    along = seen_from([[10, 0, 0], [0, 0, 10], [50, 0, -20], [10, 0.001, 7]])
    np.testing.assert_allclose(along.turned(), [0, 0, 20, 7], atol=1e-6)
    aside = seen_from([[30, 70, 5], [30, 70, 95], [30, 70, -85]])
    np.testing.assert_allclose(aside.turned(), [0, 90, -90], atol=1e-9)


def distance(rot, tilt, angles):
    """Degrees between directions on the sphere, by the haversine formula."""
    rot, tilt = np.radians([rot, tilt])
    rots, tilts = np.radians(angles.T[:2])
    half = np.sin((tilts - tilt) / 2) ** 2
    half += np.sin(tilts) * np.sin(tilt) * np.sin((rots - rot) / 2) ** 2
    return np.degrees(2 * np.arcsin(np.sqrt(np.clip(half, 0, 1))))


@pytest.mark.parametrize(("rot", "tilt", "width"), [(0, 0, 1), (-180, 90, 30), (77, 180, 179)])
def test_a_view_takes_what_is_near_on_the_sphere(rng, rot, tilt, width):
    angles = rng.uniform([-180, 0, -180], 180, size=(500, 3))
    angles[:3] = [[rot, tilt, 5], [rot + 360, tilt, -70], [rot - 360, tilt, 0]]
    seen = seen_from(angles).near_view(rot, tilt, width=width)
    assert seen.tolist() == (distance(rot, tilt, angles) < width).tolist()
    flat = angles * [1, 1, 0]
    np.testing.assert_array_equal(view_directions(angles), view_directions(flat))
