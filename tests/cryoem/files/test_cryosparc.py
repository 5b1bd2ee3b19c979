from io import BytesIO

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from manifactor.cryoem.files.cryosparc import euler_angles, read_cryosparc
from manifactor.cryoem.files.formats import particles_with, read_particles
from manifactor.cryoem.files.particles import euler_matrices


@pytest.fixture
def table(rng):
    """Seven particles as cryoSPARC keeps them."""
    fields = {
        "uid": rng.integers(2**63, 2**64, size=7, dtype=np.uint64),
        "blob/path": np.array([b">J12/extract/00%d_particles.mrc" % (i % 2) for i in range(7)]),
        "blob/idx": (np.arange(7) // 2).astype("<u4"),
        "blob/shape": np.full((7, 2), 128, "<u4"),
        "ctf/type": np.full(7, b"imported"),
        "ctf/exp_group_id": np.array([1, 1, 1, 4, 4, 4, 4], "<u4"),
        "ctf/df1_A": 15000 + np.arange(7, dtype="<f4"),
        "ctf/df2_A": 14000 + np.arange(7, dtype="<f4"),
        "alignments3D/split": np.array([0, 1, 0, 1, 1, 0, 0], "<u4"),
        "alignments3D/shift": rng.normal(size=(7, 2)).astype("<f4"),
        "alignments3D/pose": rng.normal(size=(7, 3)).astype("<f4"),
        "components_mode_0/value": rng.normal(size=7).astype("<f4"),
    }
    constant = {"ctf/accel_kv": 300, "ctf/cs_mm": 2.7, "ctf/amp_contrast": 0.1}
    constant |= {"ctf/df_angle_rad": np.pi / 6, "ctf/phase_shift_rad": np.pi / 2}
    # Aligned at half the resolution.
    constant |= {"blob/psize_A": 1.6, "alignments3D/psize_A": 3.2}
    fields |= {name: np.full(7, value, "<f4") for name, value in constant.items()}
    return structured(fields)


def structured(fields):
    kinds = [(name, values.dtype, values.shape[1:]) for name, values in fields.items()]
    out = np.empty(len(next(iter(fields.values()))), kinds)
    for name, values in fields.items():
        out[name] = values
    return out


@pytest.fixture
def save(tmp_path):
    def path_of(array, name="particles.cs", **options):
        with (tmp_path / name).open("wb") as file:
            np.save(file, array, **options)
        return tmp_path / name

    return path_of


def changed(table, **fields):
    """The table with fields added or replaced, and without those that are None; __ is a slash."""
    new = {name: table[name] for name in table.dtype.names}
    new |= {name.replace("__", "/"): values for name, values in fields.items()}
    return structured({n: np.asarray(v) for n, v in new.items() if v is not None})


def without(table, *names):
    return changed(table, **dict.fromkeys(names))


def loaded(content):
    """The table in the bytes of a .cs file."""
    return np.load(BytesIO(content), allow_pickle=False)


POSES_3D = [f"alignments3D/{name}" for name in ("split", "shift", "pose", "psize_A")]


def test_poses_of_a_2d_classification_are_in_plane(save, table, rng):
    shift, classes = rng.normal(size=(7, 2)).astype("f4"), [4, 4, 0, 4, 0, 2, 2]
    of_classes = {
        "alignments2D__pose": np.linspace(-3, 3, 7).astype("f4"),
        "alignments2D__shift": shift,
        "alignments2D__psize_A": np.full(7, 3.2, dtype="f4"),
        "alignments2D__class": np.array(classes, dtype="u4"),
    }
    particles = read_particles(save(changed(without(table, *POSES_3D), **of_classes)))
    assert particles.in_plane_only
    assert particles.angles[:, 2] == pytest.approx(np.degrees(np.linspace(-3, 3, 7)))
    assert particles.shift == pytest.approx(2 * shift)
    assert particles.microscope["class"].tolist() == classes
    # Poses in space come before those in the plane. A refinement has one class; the
    # classification before it has several.
    refined = np.zeros(7, dtype="u4")
    particles = read_particles(save(changed(table, **of_classes, alignments3D__class=refined)))
    assert not particles.in_plane_only
    assert particles.shift == pytest.approx(2 * table["alignments3D/shift"])
    assert particles.microscope["class"].tolist() == classes


def test_results_are_joined_with_their_passthrough_file(save, table):
    blobs = [name for name in table.dtype.names if name.startswith(("blob", "ctf"))]
    order = np.array([6, 2, 0, 5])
    results = save(without(table[order], *blobs), "J5_particles.cs")
    passthrough = save(without(table, *POSES_3D), "J5_passthrough.cs")
    found = read_cryosparc(passthrough, results=results)
    expected = read_particles(save(table, "whole.cs"))[order]
    assert found.path == passthrough
    assert found.rows.tolist() == order.tolist()
    assert found.uid.tolist() == expected.uid.tolist()
    for name in ("stack", "slice", "pixel_sizes", "angles", "shift"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    assert found.microscope.keys() == expected.microscope.keys()


NEW = {"factor1": np.linspace(0, 359, 7), "factor1_confidence": np.linspace(0, 1, 7)}


def test_what_is_known_of_the_particles_is_read(save, table):
    particles = read_particles(save(table))
    assert particles.uid.dtype == np.uint64
    assert np.array_equal(particles.uid, table["uid"])
    assert particles.stack.tolist() == [f"J12/extract/00{i % 2}_particles.mrc" for i in range(7)]
    assert particles.slice.tolist() == [0, 0, 1, 1, 2, 2, 3]
    assert particles.pixel_size == pytest.approx(1.6)
    # Aligned at twice the pixel size; without one of their own, shifts are in pixels of the images.
    assert particles.shift == pytest.approx(2 * table["alignments3D/shift"], rel=1e-6)
    unscaled = read_particles(save(without(table, "alignments3D/psize_A")))
    assert unscaled.shift == pytest.approx(table["alignments3D/shift"], rel=1e-6)
    numbers = {"defocus_angle": 30, "phase_shift": 90, "voltage": 300}
    numbers |= {"spherical_aberration": 2.7, "amplitude_contrast": 0.1}
    numbers |= {"defocus_u": 15000 + np.arange(7), "defocus_v": 14000 + np.arange(7)}
    numbers |= {"optics group": [1, 1, 1, 4, 4, 4, 4], "half set": [0, 1, 0, 1, 1, 0, 0]}
    assert particles.microscope.keys() == numbers.keys()
    for name, expected in numbers.items():
        np.testing.assert_allclose(particles.microscope[name], expected, rtol=1e-6)


def test_old_fields_keep_their_order_and_bytes_and_new_ones_follow(save, table):
    new = loaded(particles_with(read_particles(save(table)), NEW))
    assert new.dtype.names == (*table.dtype.names, *(f"manifactor/{name}" for name in NEW))
    for name in table.dtype.names:
        assert new.dtype[name] == table.dtype[name]
        assert new[name].tobytes() == table[name].tobytes()
    for name, values in NEW.items():
        assert new.dtype[f"manifactor/{name}"] == np.dtype("<f4")
        assert np.array_equal(new[f"manifactor/{name}"], values.astype("<f4"))


def test_angles_are_those_of_relion(rng):
    angles = rng.uniform([-180, 0, -180], 180, size=(60, 3))
    angles[:40] = np.round(angles[:40] / 90) * 90  # at the poles, too
    # RELION's matrix brings the molecule into the frame of the image. cryoSPARC's turns the other
    # way: both pyem (csparc2star.py) and cryoDRGN (parse_pose_csparc) transpose it.
    turns = Rotation.from_euler("ZYZ", angles, degrees=True)
    np.testing.assert_allclose(euler_matrices(angles), turns.inv().as_matrix(), atol=1e-9)
    found = euler_angles(turns.as_rotvec())
    np.testing.assert_allclose(euler_matrices(found), euler_matrices(angles), atol=1e-6)
    assert ((found[:, 1] >= 0) & (found[:, 1] <= 180)).all()
    # Far from the poles they come back themselves.
    np.testing.assert_allclose(found[40:], angles[40:], atol=1e-4)


def test_what_is_not_a_whole_table_of_particles_is_refused(save, table):
    objects = np.zeros(2, dtype=[("uid", "<u8"), ("blob/path", object)])
    for other, message in (
        (objects, "holds objects"),
        (np.zeros((4, 3)), "one row for each particle.*`uid`"),
        (without(table, "uid"), "one row for each particle.*`uid`"),
        (table[:0], "particles.cs holds no particles"),
    ):
        with pytest.raises(ValueError, match=message):
            read_particles(save(other, allow_pickle=True))
    path = save(table)
    for damaged in (b"", path.read_bytes()[:-5]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"^[^\n]*particles.cs is damaged[^\n]*$"):
            read_particles(path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ctf__accel_kv": ["high"] * 7}, "a finite number as ctf/accel_kv .* row 1 has 'high'"),
        ({"ctf__df1_A": np.ones((7, 2))}, "ctf/df1_A of .* numbers of shape"),
        ({"ctf__exp_group_id": [1.5] * 7}, "a whole number as ctf/exp_group_id .* has '1.5'"),
        ({"alignments3D__pose": np.full((7, 3), np.nan)}, "a finite number as alignments3D/pose"),
        ({"blob__psize_A": [1, 0, 1, 1, 1, 1, 1]}, "above 0 as blob/psize_A .* row 2 has '0'"),
        ({"blob__path": [b"\xff.mrc"] * 7}, "blob/path"),
        ({"uid": ["a"] * 7}, "`uid`"),
    ],
)
def test_fields_that_are_not_numbers_of_their_kind_are_refused(save, table, fields, message):
    path = save(changed(table, **fields))
    with pytest.raises(ValueError, match=message) as error:
        read_particles(path)
    assert "particles.cs" in str(error.value)
