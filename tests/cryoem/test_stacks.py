import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import mrcfile
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manifactor.cryoem.files.formats import read_particles
from manifactor.cryoem.files.mrc import described_map
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import ImageArray, particle_images, stack_images, volume_series


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
    return (
        np.arange(count)[:, None, None] + np.arange(np.prod(shape)).reshape(shape) / 100
    ).astype(np.float32)


def particles_at(path, stack, places):
    stack = np.broadcast_to(np.array(stack), len(places))
    return Particles(
        path,
        np.arange(len(places)),
        stack=stack,
        slice=np.array(places),
        pixel_sizes=np.full(len(places), 1.5),
    )


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


@pytest.fixture
def project(tmp_path):
    """Two stacks in one folder, 5 and 3 images, and the path of a STAR file beside them."""
    save(tmp_path / "a.mrcs", named(5))
    save(tmp_path / "b.mrcs", 100 + named(3))
    return tmp_path / "particles.star"


def test_images_of_several_stacks_come_to_their_rows(project):
    source = particle_images(
        particles_at(project, ["b.mrcs", "a.mrcs", "a.mrcs", "b.mrcs"], [2, 4, 0, 0])
    )
    assert len(source) == 4
    assert source.shape == (4, 6)
    assert source.pixel_size == 1.5
    assert np.array_equal(
        gathered(source), np.stack([100 + named(3)[2], named(5)[4], named(5)[0], 100 + named(3)[0]])
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
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
    assert max(len(block) for block, _ in source.blocks(rows)) <= size
    found = gathered(source, rows)
    for row, (name, place) in enumerate(images):
        expected = named(5)[place] + (100 if name == "b" else 0)
        assert (
            np.isnan(found[row]).all()
            if row not in rows
            else np.array_equal(found[row], expected.astype("f4"))
        )


def test_each_stack_is_read_from_front_to_back(project):
    source = particle_images(
        particles_at(project, ["b.mrcs", "a.mrcs", "a.mrcs", "b.mrcs"], [2, 4, 0, 0])
    )
    assert np.concatenate([rows for rows, _ in source.blocks()]).tolist() == [2, 1, 3, 0]


def test_an_image_may_be_used_twice(project):
    source = particle_images(particles_at(project, "a.mrcs", [3, 3]))
    assert np.array_equal(gathered(source), named(5)[[3, 3]])


def test_stacks_are_found_from_a_folder_above_as_in_a_project_of_relion(tmp_path):
    save(tmp_path / "Extract/job007/mic.mrcs", named(2))
    star = tmp_path / "Refine3D/job020/run_data.star"
    star.parent.mkdir(parents=True)
    assert np.array_equal(
        gathered(particle_images(particles_at(star, "Extract/job007/mic.mrcs", [1, 0]))),
        named(2)[::-1],
    )


def test_a_stack_beside_the_file_comes_before_one_above(tmp_path):
    save(tmp_path / "a.mrcs", named(1))
    save(tmp_path / "inner/a.mrcs", 7 + named(1))
    assert np.array_equal(
        gathered(particle_images(particles_at(tmp_path / "inner/p.star", "a.mrcs", [0]))),
        7 + named(1),
    )


def test_a_whole_path_and_the_folder_one_is_in_count_too(tmp_path, monkeypatch):
    save(tmp_path / "far/a.mrcs", named(2))
    star = tmp_path / "elsewhere/p.star"
    assert len(particle_images(particles_at(star, str(tmp_path / "far/a.mrcs"), [0, 1]))) == 2
    monkeypatch.chdir(tmp_path / "far")
    assert len(particle_images(particles_at(star, "a.mrcs", [0, 1]))) == 2


def test_images_of_cryosparc_are_found_behind_their_mark(tmp_path):
    from manifactor.cryoem.files.cryosparc import read_cryosparc

    save(tmp_path / "J3/extract/stack.mrc", named(3))
    table = np.zeros(
        2,
        dtype=[("uid", "<u8"), ("blob/path", "S32"), ("blob/idx", "<u4"), ("blob/psize_A", "<f4")],
    )
    table["blob/path"], table["blob/idx"], table["blob/psize_A"] = (
        b">J3/extract/stack.mrc",
        [2, 0],
        1.25,
    )
    (tmp_path / "J9").mkdir()
    with (tmp_path / "J9/particles.cs").open("wb") as file:
        np.save(file, table)
    source = particle_images(read_cryosparc(tmp_path / "J9/particles.cs"))
    assert source.pixel_size == 1.25
    assert np.array_equal(gathered(source), named(3)[[2, 0]])


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "float16", "float32"])
def test_all_kinds_of_numbers_become_float32(tmp_path, kind):
    images = np.arange(48).reshape(2, 4, 6).astype(kind)
    assert np.array_equal(
        gathered(stack_images(save(tmp_path / "a.mrcs", images))), images.astype(np.float32)
    )


def test_numbers_in_the_other_byte_order_are_read(tmp_path):
    path = save(tmp_path / "a.mrcs", named(2).astype(">f4"))
    assert np.array_equal(gathered(stack_images(path)), named(2))


def test_a_single_image_is_a_stack_of_one(tmp_path):
    assert np.array_equal(gathered(stack_images(save(tmp_path / "a.mrc", named(1)[0]))), named(1))


def test_the_pixel_size_is_that_of_the_particles_or_of_the_stack_or_one(tmp_path):
    path = save(tmp_path / "a.mrcs", named(2), voxel_size=0.83)
    unknown = Particles(
        tmp_path / "p.star", np.arange(1), stack=np.array(["a.mrcs"]), slice=np.array([0])
    )
    assert stack_images(path).pixel_size == pytest.approx(0.83)
    assert particle_images(unknown).pixel_size == pytest.approx(0.83)
    assert particle_images(particles_at(tmp_path / "p.star", "a.mrcs", [0])).pixel_size == 1.5
    assert stack_images(save(tmp_path / "b.mrcs", named(2))).pixel_size == 1


@pytest.mark.parametrize("length", [0, 500, 1024, -1])
def test_a_truncated_stack_is_refused(tmp_path, length):
    path = save(tmp_path / "a.mrcs", named(3))
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(
        ValueError, match=r"a.mrcs is not a whole MRC file: .* It may be truncated; copy it again"
    ):
        particle_images(particles_at(tmp_path / "p.star", "a.mrcs", [0]))


def test_what_is_no_mrc_file_is_refused(tmp_path):
    (tmp_path / "a.mrcs").write_bytes(b"data_particles\n" * 200)
    with pytest.raises(ValueError, match=r"a.mrcs is not a whole MRC file") as error:
        stack_images(tmp_path / "a.mrcs")
    assert "\n" not in str(error.value)


# Offsets of the stamp and of the machine stamp in the header, and of the sampling.
STAMP, MACHINE, SAMPLING = slice(208, 212), slice(212, 216), slice(28, 52)


def spoilt(path, *parts):
    """Overwrite parts of the header with zeros, as old programs left them."""
    content = bytearray(path.read_bytes())
    for part in parts:
        content[part] = bytes(part.stop - part.start)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("parts", [(STAMP,), (MACHINE,), (STAMP, MACHINE, SAMPLING)])
@pytest.mark.parametrize("kind", ["<f4", ">f4", "<i2"])
def test_a_stack_without_stamps_is_read(tmp_path, parts, kind):
    path = spoilt(save(tmp_path / "a.mrcs", named(3).astype(kind)), *parts)
    source = stack_images(path)
    assert np.array_equal(gathered(source), named(3).astype(kind).astype("f4"))
    assert source.pixel_size == 1
    assert not source.pixel_size_stated


@pytest.mark.parametrize("change", [lambda c: c[:-4], lambda c: c + b"more"])
def test_a_stack_without_stamps_must_have_the_size_of_its_header(tmp_path, change):
    path = spoilt(save(tmp_path / "a.mrcs", named(3)), STAMP)
    path.write_bytes(change(path.read_bytes()))
    match = r"a.mrcs is not a whole MRC file: .* the header describes 6 x 4 x 3 numbers of 4 bytes, 1312 in all, and the file has 13"
    with pytest.raises(ValueError, match=match):
        stack_images(path)


def test_a_cube_named_as_a_volume_is_no_stack(tmp_path):
    cube = named(4, shape=(4, 4))
    assert len(stack_images(save(tmp_path / "a.mrcs", cube))) == 4
    with pytest.raises(ValueError, match="looks like a volume, 4 x 4 x 4; images are"):
        stack_images(save(tmp_path / "a.mrc", cube))
    assert len(stack_images(save(tmp_path / "b.mrc", named(3, shape=(4, 4))))) == 3


@pytest.mark.parametrize("name", ["Extract/job007/a.mrcs", "/lost/project/job007/a.mrcs", "a.mrcs"])
@pytest.mark.parametrize("place", ["a.mrcs", "job007/a.mrcs"])
def test_stacks_are_found_in_the_folder_that_is_given(tmp_path, name, place):
    save(tmp_path / "moved" / place, 3 + named(2))
    particles = particles_at(tmp_path / "p.star", name, [1])
    if place != "a.mrcs" and name == "a.mrcs":
        match = "names the stack a.mrcs, and --datadir .*moved holds neither this path"
        with pytest.raises(ValueError, match=match):
            particle_images(particles, folder=tmp_path / "moved")
        return
    source = particle_images(particles, folder=tmp_path / "moved")
    assert np.array_equal(gathered(source), 3 + named(2)[[1]])


def test_the_folder_that_is_given_comes_before_all_others(tmp_path):
    save(tmp_path / "a.mrcs", named(1))
    save(tmp_path / "moved/a.mrcs", 3 + named(1))
    particles = particles_at(tmp_path / "p.star", "a.mrcs", [0])
    source = particle_images(particles, folder=tmp_path / "moved")
    assert np.array_equal(gathered(source), 3 + named(1))


def test_shifts_in_angstrom_need_a_pixel_size(tmp_path):
    star = tmp_path / "p.star"
    star.write_text(
        "data_\nloop_\n_rlnImageName #1\n_rlnOriginXAngst #2\n_rlnOriginYAngst #3\n"
        "1@a.mrcs 3.0 -6.0\n"
    )
    save(tmp_path / "a.mrcs", named(1))
    match = r"states shifts in Angstrom .* but no pixel size \(rlnImagePixelSize, or rlnDetectorPixelSize with .* Give it in Angstrom with --pixel-size"
    with pytest.raises(ValueError, match=match):
        particle_images(read_particles(star))
    assert read_particles(star, pixel_size=1.5).shift.tolist() == [[2, -4]]
    save(tmp_path / "a.mrcs", named(1), voxel_size=3.0)
    found = read_particles(star)
    assert particle_images(found).pixel_size == 3
    assert found.shift is None
    assert found.shift_at(3.0).tolist() == [[1, -2]]


def test_a_missing_stack_is_named_with_where_it_was_looked_for(project):
    with pytest.raises(
        ValueError,
        match=r"particles.star names the stack Extract/lost.mrcs, which is neither in its folder nor in one above it "
        r"nor in the current folder. Run in the project's folder, or copy the stack",
    ):
        particle_images(particles_at(project, ["a.mrcs", "Extract/lost.mrcs"], [0, 0]))


@pytest.mark.parametrize(("place", "number"), [(5, 6), (-1, 0)])
def test_an_image_beyond_its_stack_is_refused(project, place, number):
    with pytest.raises(
        ValueError,
        match=f"names image {number} of a.mrcs, which holds 5. .* or the stack was cut short",
    ):
        particle_images(particles_at(project, ["b.mrcs", "a.mrcs", "a.mrcs"], [0, 4, place]))


def test_images_of_different_sizes_are_refused(project):
    save(project.parent / "c.mrcs", named(2, shape=(5, 6)))
    with pytest.raises(
        ValueError,
        match=r"one size; a.mrcs has 4 x 6 pixels and c.mrcs 5 x 6. Bring them to one box",
    ):
        particle_images(particles_at(project, ["a.mrcs", "b.mrcs", "c.mrcs"], [0, 0, 0]))


def test_fourier_transforms_are_refused(tmp_path):
    save(tmp_path / "a.mrcs", named(2).astype(np.complex64))
    with pytest.raises(
        ValueError, match=r"a.mrcs must hold real images; it holds Fourier transforms"
    ):
        particle_images(particles_at(tmp_path / "p.star", "a.mrcs", [0]))


def test_particles_that_name_no_images_are_refused():
    with pytest.raises(
        ValueError,
        match=r"p.star names no images \(rlnImageName, or blob/path\); give particles with",
    ):
        particle_images(Particles(Path("p.star"), np.arange(3)))


def test_a_missing_package_is_named_with_what_to_install(project, monkeypatch):
    monkeypatch.setitem(sys.modules, "mrcfile", None)
    with pytest.raises(
        ValueError, match=r"this needs the package mrcfile: pip install 'manifactor\[cryoem\]'"
    ):
        stack_images(project.parent / "a.mrcs")


def test_volumes_come_in_the_order_of_their_numbers(tmp_path):
    for number in (10, 2, 1, 100):
        save(
            tmp_path / f"vol_{number}.mrc",
            np.full((3, 4, 5), number, dtype=np.float32),
            voxel_size=2.5,
        )
    (tmp_path / "notes.txt").write_text("not a volume")
    source = volume_series(tmp_path)
    assert [path.name for path in source.files] == [
        "vol_1.mrc",
        "vol_2.mrc",
        "vol_10.mrc",
        "vol_100.mrc",
    ]
    assert source.shape == (3, 4, 5)
    assert source.pixel_size == pytest.approx(2.5)
    assert gathered(source)[:, 0, 0, 0].tolist() == [1, 2, 10, 100]


@pytest.mark.parametrize("kind", ["int16", "float16"])
def test_volumes_of_all_kinds_of_numbers_become_float32(tmp_path, kind):
    save(tmp_path / "v.mrc", np.arange(60).reshape(3, 4, 5).astype(kind))
    assert np.array_equal(gathered(volume_series(tmp_path))[0], np.arange(60.0).reshape(3, 4, 5))


def test_volumes_of_different_shapes_are_refused(tmp_path):
    save(tmp_path / "v1.mrc", np.zeros((3, 4, 5), dtype=np.float32))
    save(tmp_path / "v2.mrc", np.zeros((3, 4, 4), dtype=np.float32))
    with pytest.raises(
        ValueError,
        match=r"all volumes must have one shape; v1.mrc has 3 x 4 x 5 and v2.mrc 3 x 4 x 4",
    ):
        volume_series(tmp_path)


def test_a_flat_image_is_no_volume(tmp_path):
    save(tmp_path / "v1.mrc", np.zeros((4, 5), dtype=np.float32))
    with pytest.raises(
        ValueError, match=r"v1.mrc must hold a volume of real numbers; it holds 4 x 5 of float32"
    ):
        volume_series(tmp_path)


def test_a_fourier_transform_is_no_volume(tmp_path):
    save(tmp_path / "v1.mrc", np.zeros((3, 4, 5), dtype=np.complex64))
    with pytest.raises(
        ValueError,
        match=r"v1.mrc must hold a volume of real numbers; it holds 3 x 4 x 5 of complex64",
    ):
        volume_series(tmp_path)


def test_a_folder_without_volumes_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must hold .mrc volumes; it holds none"):
        volume_series(tmp_path)


PEAK = """
import sys
from pathlib import Path
from manifactor.cryoem.files.stacks import stack_images

def peak():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024

source = stack_images(Path(sys.argv[1]))
before, count = peak(), 0
for rows, images in source.blocks():
    count += len(rows)
print(count, peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the peak of the memory is read from /proc"
)
def test_a_large_stack_is_never_in_memory_as_a_whole(tmp_path):
    path = save(tmp_path / "large.mrcs", np.zeros((1, 512, 512), dtype=np.float32))
    # By hand: mrcfile writes something into the pixels if it changes the header alone.
    with_word(path, NZ, 1024)
    # 1 GB, which takes no room on the disk.
    os.truncate(path, 1024 + 1024 * 512 * 512 * 4)
    done = subprocess.run(
        [sys.executable, "-c", PEAK, path], capture_output=True, text=True, check=True
    )
    count, megabytes = done.stdout.split()
    assert int(count) == 1024
    assert float(megabytes) < 300  # four blocks: mapped, copied, handed over, and the one before


def test_images_in_memory_are_read_as_those_in_files_are():
    images = np.arange(5 * 6.0).reshape(5, 2, 3)
    source = ImageArray(images, 1.5, block_bytes=4 * 6 * 2)
    assert (len(source), source.shape, source.pixel_size) == (5, (2, 3), 1.5)
    blocks = list(source.blocks(np.array([4, 0, 2])))
    assert [rows.tolist() for rows, _ in blocks] == [[4, 0], [2]]
    assert all(block.dtype == np.float32 for _, block in blocks)
    np.testing.assert_array_equal(blocks[0][1], images[[4, 0]])
    assert sum(len(rows) for rows, _ in source.blocks()) == 5


def test_a_stack_that_is_cut_short_while_it_is_read_is_one_line(tmp_path, monkeypatch):
    path = save(tmp_path / "a.mrcs", named(40))
    source = stack_images(path)

    def described(path):
        stack = described_map(path)
        os.truncate(path, 1024)
        return stack

    monkeypatch.setattr("manifactor.cryoem.files.mrc.described_map", described)
    with pytest.raises(ValueError, match=r"a.mrcs must not change while it is read"):
        list(source.blocks())


def with_word(path, place, value, kind="<i4"):
    """Overwrite one word of a header, counted from 0."""
    content = bytearray(path.read_bytes())
    content[4 * place : 4 * place + 4] = np.array([value], kind).tobytes()
    path.write_bytes(content)
    return path


# Words of the header: columns, rows, sections, kind of numbers, sampling in z, space
# group, and bytes of further header.
NX, NY, NZ, MODE, MZ, SPACE, FURTHER = 0, 1, 2, 3, 9, 22, 23


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({NX: 0}, "header describes 0 x 4 x 3 numbers of 4 bytes"),
        ({NY: -4}, "the header describes 6 x -4 x 3 numbers"),
        ({NX: 2**31 - 1, NY: 2**31 - 1, NZ: 2**31 - 1}, "in all, and the file has 1312"),
        ({NZ: 4}, "6 x 4 x 4 numbers of 4 bytes, 1408 in all, and the file has 1312"),
        ({MODE: 77}, "6 x 4 x 3 numbers of an unknown kind"),
        ({MODE: -1}, "numbers of an unknown kind"),
        ({FURTHER: 2**31 - 1}, "2147484959 in all, and the file has 1312"),
        ({FURTHER: -5}, "after -5 bytes of further header"),
        ({SPACE: 401, MZ: 0}, "in volumes without sections"),
    ],
)
def test_a_header_that_cannot_be_is_refused(tmp_path, words, message):
    path = save(tmp_path / "a.mrcs", named(3))
    for place, value in words.items():
        with_word(path, place, value)
    with pytest.raises(ValueError, match=f"a.mrcs is not a whole MRC file: .*{message}"):
        stack_images(path)


def test_a_stack_of_volumes_holds_no_images(tmp_path):
    path = save(tmp_path / "a.mrcs", named(4))
    with_word(with_word(path, SPACE, 401), MZ, 2)
    with pytest.raises(ValueError, match="must hold images; it holds volumes of 2 x 4 x"):
        stack_images(path)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 0.0])
def test_a_pixel_size_that_cannot_be_is_none(tmp_path, value):
    path = with_word(save(tmp_path / "a.mrcs", named(3), voxel_size=2.0), 10, value, "<f4")
    assert stack_images(path).pixel_size == 1
    assert not stack_images(path).pixel_size_stated


def test_a_pipe_among_volumes_is_refused_and_not_waited_for(tmp_path):
    save(tmp_path / "v1.mrc", named(4, shape=(4, 4)))
    os.mkfifo(tmp_path / "v2.mrc")
    with pytest.raises(ValueError, match=r"must be a file; .*v2.mrc is a named pipe"):
        volume_series(tmp_path)


def test_pixels_whose_squares_overflow_are_refused(tmp_path):
    path = save(tmp_path / "a.mrcs", named(3).astype(np.float32))
    header, image = 256, named(3)[0].size
    source = stack_images(with_word(path, header + image, -3e38, "<f4"))
    match = r"squares are finite; number 2 of a.mrcs has a value of -3e\+38"
    with pytest.raises(ValueError, match=match):
        gathered(source)


def test_what_follows_a_stack_is_named_with_the_file(tmp_path):
    path = save(tmp_path / "a.mrcs", named(3))
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.warns(RuntimeWarning, match=r"a.mrcs is 4 bytes longer than its header"):
        assert len(stack_images(path)) == 3
