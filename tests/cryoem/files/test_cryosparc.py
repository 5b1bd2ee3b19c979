from io import BytesIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from manifactor.cryoem.files.cryosparc import euler_angles, read_joined
from manifactor.cryoem.files.formats import particles_with, read_particles

FIELDS = [
    ("uid", "<u8"),
    ("blob/path", "S48"),
    ("blob/idx", "<u4"),
    ("blob/shape", "<u4", (2,)),
    ("blob/psize_A", "<f4"),
    ("ctf/type", "S9"),
    ("ctf/exp_group_id", "<u4"),
    ("ctf/accel_kv", "<f4"),
    ("ctf/cs_mm", "<f4"),
    ("ctf/amp_contrast", "<f4"),
    ("ctf/df1_A", "<f4"),
    ("ctf/df2_A", "<f4"),
    ("ctf/df_angle_rad", "<f4"),
    ("ctf/phase_shift_rad", "<f4"),
    ("alignments3D/split", "<u4"),
    ("alignments3D/shift", "<f4", (2,)),
    ("alignments3D/pose", "<f4", (3,)),
    ("alignments3D/psize_A", "<f4"),
    ("components_mode_0/value", "<f4"),
]


@pytest.fixture
def table(rng):
    """Seven particles as cryoSPARC keeps them."""
    table = np.zeros(7, dtype=FIELDS)
    table["uid"] = rng.integers(2**63, 2**64, size=7, dtype=np.uint64)
    table["blob/path"] = [b">J12/extract/00%d_particles.mrc" % (i % 2) for i in range(7)]
    table["blob/idx"] = np.arange(7) // 2
    table["blob/shape"] = 128
    table["blob/psize_A"] = 1.6
    table["ctf/type"] = b"imported"
    table["ctf/exp_group_id"] = [1, 1, 1, 4, 4, 4, 4]
    table["ctf/accel_kv"], table["ctf/cs_mm"], table["ctf/amp_contrast"] = 300, 2.7, 0.1
    table["ctf/df1_A"], table["ctf/df2_A"] = 15000 + np.arange(7), 14000 + np.arange(7)
    table["ctf/df_angle_rad"], table["ctf/phase_shift_rad"] = np.pi / 6, np.pi / 2
    table["alignments3D/split"] = [0, 1, 0, 1, 1, 0, 0]
    table["alignments3D/shift"] = rng.normal(size=(7, 2))
    table["alignments3D/pose"] = rng.normal(size=(7, 3))
    table["alignments3D/psize_A"] = 3.2  # aligned at half the resolution
    table["components_mode_0/value"] = rng.normal(size=7)
    return table


@pytest.fixture
def save(tmp_path):
    def path_of(array, name="particles.cs", **options):
        with (tmp_path / name).open("wb") as file:
            np.save(file, array, **options)
        return tmp_path / name

    return path_of


def without(table, *names):
    rest = [name for name in table.dtype.names if name not in names]
    out = np.empty(len(table), dtype=[(name, table.dtype[name]) for name in rest])
    for name in rest:
        out[name] = table[name]
    return out


def loaded(content):
    """The table in the bytes of a .cs file."""
    return np.load(BytesIO(content), allow_pickle=False)


def with_fields(table, **fields):
    """The table with fields added, slashes for double underscores."""
    names = {name.replace("__", "/"): value for name, value in fields.items()}
    kinds = [(n, np.asarray(v).dtype, np.shape(v)[1:]) for n, v in names.items()]
    out = np.empty(len(table), dtype=[*table.dtype.descr, *kinds])
    for name in table.dtype.names:
        out[name] = table[name]
    for name, value in names.items():
        out[name] = value
    return out


POSES_3D = [f"alignments3D/{name}" for name in ("split", "shift", "pose", "psize_A")]


@pytest.fixture
def classified(table, rng):
    """The same particles after a 2-D classification."""
    return with_fields(
        without(table, *POSES_3D),
        alignments2D__pose=np.linspace(-3, 3, 7).astype("f4"),
        alignments2D__shift=rng.normal(size=(7, 2)).astype("f4"),
        alignments2D__psize_A=np.full(7, 3.2, dtype="f4"),
        alignments2D__class=np.array([4, 4, 0, 4, 0, 2, 2], dtype="u4"),
    )


def test_poses_of_a_2d_classification_are_in_plane(save, classified):
    particles = read_particles(save(classified))
    assert particles.in_plane_only
    assert particles.angles[:, 2] == pytest.approx(np.degrees(np.linspace(-3, 3, 7)))
    assert particles.shift == pytest.approx(2 * classified["alignments2D/shift"])
    assert particles.microscope["class"].tolist() == [4, 4, 0, 4, 0, 2, 2]


def test_poses_in_space_come_before_those_in_the_plane(save, table):
    both = with_fields(
        table,
        alignments2D__pose=np.ones(7, dtype="f4"),
        alignments2D__shift=np.ones((7, 2), dtype="f4"),
        alignments3D__class=np.zeros(7, dtype="u4"),
        alignments2D__class=np.arange(7, dtype="u4"),
    )
    particles = read_particles(save(both))
    assert not particles.in_plane_only
    assert particles.shift == pytest.approx(2 * table["alignments3D/shift"])
    # A refinement has one class; the classification before it has several.
    assert particles.microscope["class"].tolist() == list(range(7))


def test_results_are_joined_with_their_passthrough_file(save, table):
    blobs = [name for name in table.dtype.names if name.startswith(("blob", "ctf"))]
    order = np.array([6, 2, 0, 5])
    results = save(without(table[order], *blobs), "J5_particles.cs")
    passthrough = save(without(table, *POSES_3D), "J5_passthrough.cs")
    found = read_joined(passthrough, results)
    expected = read_particles(save(table, "whole.cs"))[order]
    assert found.path == passthrough
    assert found.rows.tolist() == order.tolist()
    assert found.uid.tolist() == expected.uid.tolist()
    for name in ("stack", "slice", "pixel_sizes", "angles", "shift"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    assert found.microscope.keys() == expected.microscope.keys()


def test_particles_in_any_order_are_written_in_that_of_their_file(save, table):
    particles = read_particles(save(table))[np.array([5, 1, 3])]
    out = loaded(particles_with(particles, {"factor1": np.array([50.0, 10.0, 30.0])}))
    assert out["uid"].tolist() == table["uid"][[1, 3, 5]].tolist()
    assert out["manifactor/factor1"].tolist() == [10, 30, 50]


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


def test_what_a_file_does_not_tell_is_left_out(save, table):
    particles = read_particles(save(table[["uid", "ctf/df1_A"]]))
    for name in ("stack", "slice", "pixel_size", "angles", "shift"):
        assert getattr(particles, name) is None
    assert list(particles.microscope) == ["defocus_u"]


def test_old_fields_keep_their_order_and_bytes_and_new_ones_follow(save, table):
    new = loaded(particles_with(read_particles(save(table)), NEW))
    assert new.dtype.names == (*table.dtype.names, *(f"manifactor/{name}" for name in NEW))
    for name in table.dtype.names:
        assert new.dtype[name] == table.dtype[name]
        assert new[name].tobytes() == table[name].tobytes()
    for name, values in NEW.items():
        assert new.dtype[f"manifactor/{name}"] == np.dtype("<f4")
        assert np.array_equal(new[f"manifactor/{name}"], values.astype("<f4"))


def test_gaps_between_fields_do_not_become_fields(save, table):
    kinds = [("uid", "<u8"), ("blob/idx", "u1"), ("ctf/df1_A", "<f8")]
    gaps = np.zeros(7, dtype=np.dtype(kinds, align=True))
    gaps["uid"] = table["uid"]
    new = loaded(particles_with(read_particles(save(gaps)), {"factor1": NEW["factor1"]}))
    assert new.dtype.names == ("uid", "blob/idx", "ctf/df1_A", "manifactor/factor1")
    assert np.array_equal(new["uid"], table["uid"])


def test_places_of_an_earlier_run_are_replaced(save, table):
    path = save(table)
    once = particles_with(read_particles(path), {**NEW, "factor9": np.zeros(len(table))})
    path.write_bytes(once)
    again = particles_with(read_particles(path), NEW)
    assert again == particles_with(read_particles(save(table)), NEW)


def relion_matrix(rot, tilt, psi):
    """The matrix of RELION's Euler_angles2matrix, which brings the molecule into the frame of the image."""
    angles = np.radians([rot, tilt, psi])
    (ca, cb, cg), (sa, sb, sg) = np.cos(angles), np.sin(angles)
    return np.array(
        [
            [cg * cb * ca - sg * sa, cg * cb * sa + sg * ca, -cg * sb],
            [-sg * cb * ca - cg * sa, -sg * cb * sa + cg * ca, sg * sb],
            [sb * ca, sb * sa, cb],
        ]
    )


def cryosparc_pose(matrix):
    """The rotation vector by which cryoSPARC knows RELION's matrix.

    It turns the other way, from the frame of the image to the molecule: both pyem (csparc2star.py) and cryoDRGN
    (parse_pose_csparc) transpose its matrix.
    """
    return Rotation.from_matrix(matrix.T).as_rotvec()


ANGLE = st.floats(-180, 180) | st.sampled_from([-180.0, -90.0, 0.0, 90.0, 180.0])


@given(rot=ANGLE, tilt=st.floats(0, 180) | st.sampled_from([0.0, 90.0, 180.0]), psi=ANGLE)
def test_angles_are_those_of_relion(rot, tilt, psi):
    matrix = relion_matrix(rot, tilt, psi)
    found = euler_angles(cryosparc_pose(matrix)[None])[0]
    assert relion_matrix(*found) == pytest.approx(matrix, abs=1e-6)
    assert 0 <= found[1] <= 180


def test_angles_far_from_the_poles_come_back_themselves():
    angles = np.array([[10, 20, 30], [-170, 90, 45], [77, 179, -3], [0, 1, 0]])
    poses = np.array([cryosparc_pose(relion_matrix(*each)) for each in angles])
    assert euler_angles(poses) == pytest.approx(angles, abs=1e-4)


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_pickled_objects_are_refused_and_nothing_is_run(save, tmp_path):
    objects = np.zeros(2, dtype=[("uid", "<u8"), ("blob/path", object)])
    objects["blob/path"] = [Bomb(tmp_path / "harm"), None]
    for array in (objects, objects["blob/path"]):
        with pytest.raises(ValueError, match="holds objects"):
            read_particles(save(array, allow_pickle=True))
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: b"PK\x03\x04not a zip",
        lambda content: b"\x93NUMPY\x01\x00",
        lambda content: content[:-5],
        lambda content: content.replace(b"'shape': (7,), ", b"'shape': (10000000000,), "),
    ],
)
def test_a_damaged_file_gives_one_line_that_names_it(save, table, damage):
    path = save(table)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"particles.cs is damaged") as error:
        read_particles(path)
    assert "\n" not in str(error.value)


def test_what_is_not_a_table_of_particles_is_refused(save, table):
    for other in (np.zeros((4, 3)), table[:6].reshape(2, 3), without(table, "uid")):
        with pytest.raises(ValueError, match=r"one row for each particle.*`uid`"):
            read_particles(save(other))
    with pytest.raises(ValueError, match=r"particles.cs holds no particles"):
        read_particles(save(table[:0]))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ctf__accel_kv": ["high"] * 7}, "a finite number as ctf/accel_kv .* row 1 has 'high'"),
        ({"ctf__df1_A": np.ones((7, 2))}, "ctf/df1_A of .* numbers of shape"),
        ({"ctf__df1_A": np.ones(7, complex)}, "ctf/df1_A of .* got complex128"),
        ({"ctf__exp_group_id": [1.5] * 7}, "a whole number as ctf/exp_group_id .* has '1.5'"),
        ({"alignments3D__pose": np.ones((7, 4))}, "alignments3D/pose of .* shape .3,."),
        ({"alignments3D__pose": np.full((7, 3), np.nan)}, "a finite number as alignments3D/pose"),
        ({"alignments3D__shift": [["a", "b"]] * 7}, "a finite number as alignments3D/shift"),
        ({"blob__psize_A": [1, 0, 1, 1, 1, 1, 1]}, "above 0 as blob/psize_A .* row 2 has '0'"),
        ({"blob__idx": [0.5] * 7}, "a whole number as blob/idx"),
        ({"blob__path": [b"\xff.mrc"] * 7}, "blob/path"),
        ({"uid": ["a"] * 7}, "`uid`"),
    ],
)
def test_fields_that_are_not_numbers_of_their_kind_are_refused(save, table, fields, message):
    names = [name.replace("__", "/") for name in fields]
    path = save(with_fields(without(table, *names), **fields))
    with pytest.raises(ValueError, match=message) as error:
        read_particles(path)
    assert "particles.cs" in str(error.value)
