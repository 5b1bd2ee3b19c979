import os
import tracemalloc
from dataclasses import replace

import mrcfile
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manifactor.cryoem.files.formats import read_particles
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import (
    particle_images,
    stack_images,
    volume_series,
    write_stack,
    write_volume,
)


def save(path, data, *, voxel_size=None):
    """An MRC file; three axes are a stack where the name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with mrcfile.new(path, overwrite=True) as file:
        file.set_data(data)
        if path.suffix == ".mrcs":
            file.set_image_stack()
        if voxel_size:
            file.voxel_size = voxel_size
    return path


def named(count, shape=(4, 6)):
    """Images whose pixels tell which image they are in."""
    pixels = np.arange(np.prod(shape)).reshape(shape) / 100
    return (np.arange(count)[:, None, None] + pixels).astype(np.float32)


def test_stacks_and_volumes_come_back_with_their_pixel_size(tmp_path, rng):
    stack, volume = rng.normal(size=(2, 4, 8, 6)).astype(np.float32)
    write_stack(tmp_path / "means.mrcs", stack, pixel_size=1.35)
    write_volume(tmp_path / "map.mrc", volume, pixel_size=1.35)
    for path, images in ((tmp_path / "means.mrcs", stack), (tmp_path / "map.mrc", volume)):
        with mrcfile.open(path) as file:
            assert file.is_image_stack() == (path.suffix == ".mrcs")
            assert [float(file.voxel_size[side]) for side in "xy"] == pytest.approx([1.35] * 2)
            assert np.array_equal(file.data, images)
        assert mrcfile.validate(path)


def particles_at(path, stack, places):
    n = len(places)
    known = {"slice": np.array(places), "pixel_sizes": np.full(n, 1.5)}
    return Particles(path, np.arange(n), stack=np.broadcast_to(np.array(stack), n), **known)


def gathered(source, rows=None):
    """All images by row, after checking that every row is reported once."""
    blocks = list(source.blocks(rows))
    seen = np.concatenate([block_rows for block_rows, _ in blocks])
    assert len(set(seen.tolist())) == len(seen)
    assert all(images.dtype == np.float32 for _, images in blocks)
    out = np.full((len(source), *source.shape), np.nan, dtype=np.float32)
    for block_rows, images in blocks:
        out[block_rows] = images
    return out


def with_words(path, words, kind="<i4"):
    """Overwrite words of a header, counted from 0."""
    content = bytearray(path.read_bytes())
    for place, value in words.items():
        content[4 * place : 4 * place + 4] = np.array([value], kind).tobytes()
    path.write_bytes(content)
    return path


# Words of the header: columns, rows, sections, kind of numbers, sampling in z, width in Angstrom,
# space group, bytes of further header, stamp and machine stamp.
NX, NY, NZ, MODE, MZ, WIDTH, SPACE, FURTHER, STAMP, MACHINE = 0, 1, 2, 3, 9, 10, 22, 23, 52, 53


@pytest.fixture
def project(tmp_path):
    """Two stacks in one folder, 5 and 3 images, and the path of a STAR file beside them."""
    save(tmp_path / "a.mrcs", named(5))
    save(tmp_path / "b.mrcs", 100 + named(3))
    return tmp_path / "particles.star"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(
    images=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), min_size=1, max_size=9),
    size=st.integers(1, 4),
    data=st.data(),
)
def test_any_rows_in_any_order_and_block_size_have_the_right_content(project, images, size, data):
    names, places = zip(*images, strict=True)
    source = particle_images(particles_at(project, [f"{name}.mrcs" for name in names], places))
    rows = np.array(data.draw(st.lists(st.integers(0, len(images) - 1), unique=True, min_size=1)))
    source = replace(source, block_bytes=size * 4 * 24)
    blocks = [block for block, _ in source.blocks(rows)]
    assert max(map(len, blocks)) <= size
    # Each stack is read from front to back.
    order = [images[row] for row in np.concatenate(blocks)]
    assert order == sorted(order)
    found = gathered(source, rows)
    for row, (name, place) in enumerate(images):
        expected = named(5)[place] + (100 if name == "b" else 0)
        expected = expected.astype("f4") if row in rows else np.full((4, 6), np.nan, "f4")
        assert np.array_equal(found[row], expected, equal_nan=True)


def test_stacks_are_found_from_a_folder_above_as_in_a_project_of_relion(tmp_path, monkeypatch):
    stack = save(tmp_path / "Extract/job007/mic.mrcs", named(2))
    star = tmp_path / "Refine3D/job020/run_data.star"
    star.parent.mkdir(parents=True)
    found = particle_images(particles_at(star, "Extract/job007/mic.mrcs", [1, 0]))
    assert np.array_equal(gathered(found), named(2)[::-1])
    # By a whole path, and from the current folder.
    assert particle_images(particles_at(star, str(stack), [0])).files == (stack,)
    monkeypatch.chdir(stack.parent)
    assert len(particle_images(particles_at(star, "mic.mrcs", [0, 1]))) == 2


def test_the_pixel_size_is_that_of_the_particles_or_of_the_stack_or_one(tmp_path):
    path = save(tmp_path / "a.mrcs", named(2), voxel_size=0.83)
    unknown = replace(particles_at(tmp_path / "p.star", "a.mrcs", [0]), pixel_sizes=None)
    assert stack_images(path).pixel_size == pytest.approx(0.83)
    assert particle_images(unknown).pixel_size == pytest.approx(0.83)
    assert particle_images(particles_at(tmp_path / "p.star", "a.mrcs", [0])).pixel_size == 1.5
    assert stack_images(save(tmp_path / "b.mrcs", named(2))).pixel_size == 1


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("a.mrcs", "a.mrcs"),
        ("Extract/job007/a.mrcs", "a.mrcs"),
        ("/lost/project/job007/a.mrcs", "job007/a.mrcs"),
    ],
)
def test_stacks_are_found_in_the_folder_that_is_given(tmp_path, name, place):
    save(tmp_path / "moved" / place, 3 + named(2))
    save(tmp_path / "a.mrcs", named(2))  # which is not the one
    particles = particles_at(tmp_path / "p.star", name, [1])
    source = particle_images(particles, folder=tmp_path / "moved")
    assert np.array_equal(gathered(source), 3 + named(2)[[1]])
    with pytest.raises(ValueError, match=r"b.mrcs, and --datadir .*moved holds neither"):
        particle_images(replace(particles, stack=np.array(["b.mrcs"])), folder=tmp_path / "moved")


def test_shifts_in_angstrom_need_a_pixel_size(tmp_path):
    star = tmp_path / "p.star"
    labels = "_rlnImageName #1\n_rlnOriginXAngst #2\n_rlnOriginYAngst #3"
    star.write_text(f"data_\nloop_\n{labels}\n1@a.mrcs 3.0 -6.0\n")
    save(tmp_path / "a.mrcs", named(1))
    with pytest.raises(ValueError, match=r"shifts in Angstrom .* but no pixel size .*--pixel-size"):
        particle_images(read_particles(star))
    assert read_particles(star, pixel_size=1.5).shift.tolist() == [[2, -4]]
    save(tmp_path / "a.mrcs", named(1), voxel_size=3.0)
    found = read_particles(star)
    assert particle_images(found).pixel_size == 3
    assert found.shift is None
    assert found.shift_at(3.0).tolist() == [[1, -2]]


def test_volumes_come_in_the_order_of_their_numbers(tmp_path):
    for number in (10, 2, 1, 100):
        save(tmp_path / f"vol_{number}.mrc", np.full((3, 4, 5), number, "i2"), voxel_size=2.5)
    (tmp_path / "notes.txt").write_text("not a volume")
    source = volume_series(tmp_path)
    assert source.shape == (3, 4, 5)
    assert source.pixel_size == pytest.approx(2.5)
    assert gathered(source)[:, 0, 0, 0].tolist() == [1, 2, 10, 100]


def test_a_large_stack_is_never_in_memory_as_a_whole(tmp_path):
    path = save(tmp_path / "large.mrcs", np.zeros((1, 512, 512), dtype=np.float32))
    with_words(path, {NZ: 60})
    os.truncate(path, 1024 + 60 * 2**20)  # 60 MB, which take no room on the disk
    source = replace(stack_images(path), block_bytes=2 * 2**20)
    tracemalloc.start()
    assert sum(len(rows) for rows, _ in source.blocks()) == 60
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * source.block_bytes  # read, converted, handed over, and the one before


@pytest.mark.parametrize(
    "damage",
    [
        {NY: -4},
        {NX: 2**31 - 1, NY: 2**31 - 1, NZ: 2**31 - 1},
        {NZ: 4},
        {MODE: 77},
        {FURTHER: -5},
        {SPACE: 401, MZ: 0},
        lambda content: content[:500],
        lambda content: b"data_particles\n" * 200,
        # Without the stamp of the format, the size must be exact.
        lambda content: content.replace(b"MAP ", bytes(4)) + b"more",
    ],
)
def test_a_damaged_stack_gives_one_line_that_names_it(tmp_path, damage):
    path = save(tmp_path / "a.mrcs", named(3))
    if callable(damage):
        path.write_bytes(damage(path.read_bytes()))
    else:
        with_words(path, damage)
    with pytest.raises(ValueError, match=r"a.mrcs is not a whole MRC file") as error:
        particle_images(particles_at(tmp_path / "p.star", "a.mrcs", [0]))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("names", "slices", "message"),
    [
        (["a.mrcs", "Extract/lost.mrcs"], [0, 0], "names the stack Extract/lost.mrcs, .*--datadir"),
        (["b.mrcs", "a.mrcs"], [0, 5], "names image 6 of a.mrcs, which holds 5"),
        (["b.mrcs", "a.mrcs"], [0, -1], "names image 0 of a.mrcs"),
        (["a.mrcs", "c.mrcs"], [0, 0], "one size; a.mrcs has 4 x 6 and c.mrcs 5 x 6"),
        (["d.mrcs"], [0], "d.mrcs must hold images of real numbers; .* complex64"),
        (["e.mrcs"], [0], "e.mrcs must hold images .* it holds 2 x 2 x 4 x 6"),
    ],
)
def test_images_that_cannot_be_read_are_refused(project, names, slices, message):
    save(project.parent / "c.mrcs", named(2, shape=(5, 6)))
    save(project.parent / "d.mrcs", named(2).astype(np.complex64))
    with_words(save(project.parent / "e.mrcs", named(4)), {SPACE: 401, MZ: 2})
    with pytest.raises(ValueError, match=message):
        particle_images(particles_at(project, names, slices))
    with pytest.raises(ValueError, match="names no images"):
        particle_images(Particles(project, np.arange(3)))


def test_what_is_not_a_series_of_volumes_is_refused(tmp_path):
    with pytest.raises(ValueError, match="it holds none"):
        volume_series(tmp_path)
    for bad, message in (
        (np.zeros((3, 4, 4), "f4"), "one size; v1.mrc has 3 x 4 x 5 and v2.mrc 3 x 4 x 4"),
        (np.zeros((4, 5), "f4"), "v2.mrc must hold volumes .* 4 x 5 of float32"),
        (np.zeros((3, 4, 5), "c8"), "v2.mrc must hold volumes .* complex64"),
    ):
        save(tmp_path / "v1.mrc", np.zeros((3, 4, 5), "f4"))
        save(tmp_path / "v2.mrc", bad)
        with pytest.raises(ValueError, match=message):
            volume_series(tmp_path)
