from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from manifactor.cryoem.files.formats import read_particles
from manifactor.cryoem.files.particles import Particles, view_directions
from manifactor.runs.places import Place, coordinate_columns

from ..star_files import RELION_5, RELION_5_TOMO, RELION_30, RELION_31


@pytest.fixture
def read(tmp_path):
    def particles_of(text):
        path = tmp_path / "particles.star"
        path.write_text(text)
        return read_particles(path)

    return particles_of


def test_relion_3_0_has_optics_in_every_row_and_shifts_in_pixels(read):
    particles = read(RELION_30)
    assert len(particles) == 6
    # 5 micrometres on the detector, magnified 37,037 times.
    assert particles.pixel_size == pytest.approx(1.35)
    assert particles.shift == pytest.approx(
        np.array([[2, -1], [0.5, 3.25], [-4, 0], [1, 1], [0, -2.5], [0, 0]])
    )
    assert particles.angles[0] == pytest.approx([-17.9541, 90, 12.5])
    assert particles.angles[3] == pytest.approx([95.25, 178.5, 0.001])
    assert particles.stack.tolist() == [f"Extract/job007/mic_{k}.mrcs" for k in "aaabbb"]
    assert particles.slice.tolist() == [0, 1, 2, 11, 0, 1]
    assert particles.microscope["defocus_u"] == pytest.approx(
        [15120.300781] * 2 + [15120.3] + [21010] * 3
    )
    assert particles.microscope["defocus_v"] == pytest.approx(14810.5)
    assert particles.microscope["defocus_angle"] == pytest.approx(35.87)
    assert particles.microscope["voltage"] == pytest.approx(300)
    assert particles.microscope["spherical_aberration"] == pytest.approx(2.7)
    assert particles.microscope["amplitude_contrast"] == pytest.approx(0.1)
    assert particles.microscope["half set"].tolist() == [1, 2, 1, 2, 2, 1]
    assert not {"phase_shift", "optics group"} & set(particles.microscope)
    assert particles.uid is None


def test_relion_3_1_has_optics_groups_and_shifts_in_angstrom(read):
    particles = read(RELION_31)
    assert particles.pixel_size == pytest.approx(1.244531)
    in_angstrom = np.array([[1.5, -2], [0, 0], [0.25, 4], [7, 1], [0.1, 0], [-3, 2.75]])
    assert particles.shift == pytest.approx(in_angstrom / 1.244531)
    assert particles.angles[3] == pytest.approx([-179.9, 23, 33])
    assert particles.stack.tolist() == [f"Extract/job012/m{k}.mrcs" for k in "111222"]
    assert particles.slice.tolist() == [2, 0, 1, 0, 1, 2]
    assert particles.microscope["defocus_u"] == pytest.approx([9873.2] * 3 + [8000] * 3)
    assert particles.microscope["phase_shift"] == pytest.approx([0] * 3 + [90] * 3)
    assert particles.microscope["optics group"].tolist() == [7, 7, 7, 2, 2, 2]
    assert particles.microscope["voltage"] == pytest.approx([300] * 3 + [200] * 3)
    assert particles.microscope["spherical_aberration"] == pytest.approx([2.7] * 3 + [0.01] * 3)
    assert particles.microscope["amplitude_contrast"] == pytest.approx([0.1] * 3 + [0.07] * 3)
    assert particles.microscope["half set"].tolist() == [1, 2, 1, 2, 2, 1]


def test_relion_5_is_read_as_3_1_is(read):
    particles = read(RELION_5)
    assert particles.pixel_size == pytest.approx(0.885)
    assert particles.shift[[0, 5]] == pytest.approx(
        np.array([[-2.12499, 0.177], [12.3456789, 0.177]]) / 0.885
    )
    assert particles.angles[2] == pytest.approx([160, 81.25, -12.5])
    assert particles.slice.tolist() == [0, 1, 2, 3, 4, 5]
    assert set(particles.stack) == {"Extract/job032/Movies/m.mrcs"}
    assert particles.microscope["voltage"] == pytest.approx(300)
    assert particles.microscope["optics group"].tolist() == [1] * 6


def test_tomograms_have_a_stack_for_each_particle(read):
    particles = read(RELION_5_TOMO)
    assert particles.pixel_size == pytest.approx(5.4)
    assert particles.stack[1] == "Extract/job009/Subtomograms/TS_01/2_stack2d.mrcs"
    assert particles.slice.tolist() == [0] * 6
    assert "defocus_u" not in particles.microscope


def test_optics_that_are_not_a_loop_count_too(read):
    simple = (
        "data_optics\n\n_rlnOpticsGroup 1\n_rlnVoltage 300.0\n_rlnImagePixelSize 0.885\n\n"
        + RELION_5[RELION_5.index("data_particles") :]
    )
    particles = read(simple)
    assert particles.pixel_size == pytest.approx(0.885)
    assert particles.microscope["voltage"].tolist() == [300] * 6


def test_what_a_file_does_not_tell_is_left_out(read):
    particles = read("data_particles\n\nloop_\n_rlnOriginX #1\n_rlnAngleRot #2\n0 1\n1 2\n")
    assert particles.microscope == {}
    for name in ("stack", "slice", "pixel_size", "angles", "shift"):
        assert getattr(particles, name) is None


def test_classes_are_known(read):
    particles = read("data_\nloop_\n_rlnAnglePsi #1\n_rlnClassNumber #2\n10 3\n-20 3\n30 1\n")
    assert particles.microscope["class"].tolist() == [3, 3, 1]
    # A 2-D classification states the in-plane angle alone.
    assert particles.in_plane_only
    assert particles.angles.tolist() == [[0, 0, 10], [0, 0, -20], [0, 0, 30]]


def test_a_pixel_size_that_is_given_counts(read, tmp_path):
    stated = read(RELION_31)
    given = read_particles(tmp_path / "particles.star", pixel_size=2.5)
    assert given.pixel_size == 2.5
    assert given.shift == pytest.approx(stated.shift * stated.pixel_size / 2.5)


def test_images_of_different_pixel_sizes_are_refused_when_they_are_needed(read):
    mixed = read(RELION_31.replace("1.244531", "0.830000", 1))
    with pytest.raises(ValueError, match=r"one pixel size; .* have 0.83 to 1.245 A"):
        _ = mixed.pixel_size
    # Less than a part in a thousand is rounding.
    assert read(RELION_31.replace("1.244531", "1.244532", 1)).pixel_size == 1.244532
    older = read(RELION_30.replace("37037.037037", "40000.000000", 1))
    with pytest.raises(ValueError, match=r"have 1.25 to 1.35 A"):
        _ = older.pixel_size


def test_rot_turns_an_image_that_is_seen_along_the_axis():
    along = seen_from([[10, 0, 0], [0, 0, 10], [50, 0, -20], [10, 0.001, 7]])
    np.testing.assert_allclose(along.turned(), [0, 0, 20, 7], atol=1e-6)
    aside = seen_from([[30, 70, 5], [30, 70, 95], [30, 70, -85]])
    np.testing.assert_allclose(aside.turned(), [0, 90, -90], atol=1e-9)


def test_other_particles_have_another_fingerprint(read):
    particles = read(RELION_31)
    assert particles.fingerprint == read(RELION_31).fingerprint
    assert particles[[1, 0, 2]].fingerprint != particles[[0, 1, 2]].fingerprint


@pytest.mark.parametrize("name", ["first@stack.mrcs", "1.5@stack.mrcs"])
def test_images_must_have_a_number(read, name):
    with pytest.raises(ValueError, match=f"must name images as 000001@stack.mrcs; got '{name}'"):
        read(f"data_\nloop_\n_rlnImageName #1\n000001@stack.mrcs\n{name}\n")


def test_names_may_hold_an_at_sign_of_their_own(read):
    particles = read("data_\nloop_\n_rlnImageName #1\n000003@me@home/stack.mrcs\n")
    assert particles.slice.tolist() == [2]
    assert particles.stack.tolist() == ["me@home/stack.mrcs"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.txt", "particles must come as one of .star, .cs; got a.txt"),
        ("a.star", "the particles must be a file; .*a.star does not exist"),
        ("folder.star", "the particles must be a file; .*folder.star is a folder"),
    ],
)
def test_what_is_no_file_of_particles_is_refused(tmp_path, name, message):
    (tmp_path / "folder.star").mkdir()
    with pytest.raises(ValueError, match=message):
        read_particles(tmp_path / name)


@pytest.mark.parametrize("chosen", [[4, 0], [False, True, True, False, False, True], slice(1, 3)])
def test_a_choice_of_particles_takes_all_that_is_known_along(read, chosen):
    particles = read(RELION_31)
    chosen = chosen if isinstance(chosen, slice) else np.array(chosen)
    part = particles[chosen]
    assert part.path == particles.path
    assert part.pixel_size == particles.pixel_size
    assert len(part) == len(part.rows)
    assert part.rows.tolist() == np.arange(6)[chosen].tolist()
    for name in ("stack", "slice", "angles", "shift"):
        assert np.array_equal(getattr(part, name), getattr(particles, name)[chosen])
    assert set(part.microscope) == set(particles.microscope)
    for name, values in particles.microscope.items():
        assert np.array_equal(part.microscope[name], values[chosen])


def seen_from(angles):
    angles = np.array(angles, dtype=float)
    return Particles(Path("a.star"), np.arange(len(angles)), angles=angles)


def distance(rot, tilt, angles):
    """Degrees between directions on the sphere, by the haversine formula."""
    rot, tilt = np.radians([rot, tilt])
    rots, tilts = np.radians(np.asarray(angles, dtype=float).T[:2])
    half = np.sin((tilts - tilt) / 2) ** 2
    half += np.sin(tilts) * np.sin(tilt) * np.sin((rots - rot) / 2) ** 2
    return np.degrees(2 * np.arcsin(np.sqrt(np.clip(half, 0, 1))))


ROT, TILT = st.floats(-180, 180), st.floats(0, 180)


@pytest.mark.slow
@given(
    angles=st.lists(st.tuples(ROT, TILT, ROT), min_size=1, max_size=8),
    rot=ROT,
    tilt=TILT,
    width=st.floats(1, 180),
)
def test_a_view_takes_what_is_near_on_the_sphere(angles, rot, tilt, width):
    apart = distance(rot, tilt, angles)
    assume((np.abs(apart - width) > 1e-3).all())
    assert seen_from(angles).near_view(rot, tilt, width=width).tolist() == (apart < width).tolist()


@given(rot=ROT, tilt=TILT, psi=ROT, turn=st.sampled_from([-360, 0, 360]))
def test_the_angle_in_the_plane_and_full_turns_do_not_change_the_view(rot, tilt, psi, turn):
    assert seen_from([[rot + turn, tilt, psi]]).near_view(rot, tilt, width=0.01).all()
    assert view_directions(np.array([[rot, tilt, psi]])) == pytest.approx(
        view_directions(np.array([[rot, tilt, 0]]))
    )


def test_at_the_pole_all_rotations_are_one_view_and_opposite_views_are_apart():
    particles = seen_from([[0, 0, 0], [90, 0, 0], [200, 0.5, 0], [0, 180, 0], [0, 5, 0]])
    assert particles.near_view(77, 0, width=1).tolist() == [True, True, True, False, False]


def test_columns_have_the_names_of_their_format():
    sheet = Place(np.arange(6.0).reshape(3, 2), "other", np.ones(3))
    places = [Place(np.zeros(3), "circle"), sheet]
    expected = "mfFactor1 mfFactor2Dimension1 mfFactor2Dimension2 mfFactor2Confidence"
    assert " ".join(coordinate_columns(places, ".star")) == expected
    columns = coordinate_columns(places, ".cs")
    expected = "factor1 factor2_dimension1 factor2_dimension2 factor2_confidence"
    assert " ".join(columns) == expected
    assert columns["factor2_dimension2"].tolist() == [1, 3, 5]
