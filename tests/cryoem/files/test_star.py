import numpy as np
import pytest
import starfile
from hypothesis import given, settings
from hypothesis import strategies as st

from manifactor.cryoem.files.formats import particles_with, read_particles
from manifactor.cryoem.files.star import find_blocks, particle_table, with_columns

from ..star_files import FLAVOURS, RELION_5, RELION_30, RELION_31

NEW = {
    "mfFactor1": np.linspace(0, 359, 6),
    "mfFactor1Confidence": np.array([1, 0.5, 0.25, 1e-7, 0, 0.999]),
}
TAILS = [f"{angle:.6f} {sure:.6f}" for angle, sure in zip(*NEW.values(), strict=True)]


FLAVOURED = pytest.mark.parametrize("text", FLAVOURS.values(), ids=FLAVOURS)


def written(folder, text, *, rows=None, columns=NEW):
    """What becomes of a STAR file with this text when columns are added and rows are chosen."""
    path = folder / "particles.star"
    path.write_bytes(text.encode())
    particles = read_particles(path)
    rows = np.arange(len(particles)) if rows is None else np.asarray(rows)
    new = particles_with(particles[rows], {name: values[rows] for name, values in columns.items()})
    assert path.read_bytes() == text.encode(), "the file itself is never changed"
    return new.decode()


def table(text):
    return particle_table(find_blocks(text))


def lines(text):
    return text.splitlines(keepends=True)


def with_tail(row, tail):
    """A row with a tail of values, and else as it was, spaces and end included."""
    body = row.rstrip("\r\n")
    return body + ("" if body[-1].isspace() else " ") + tail + row[len(body) :]


def assert_only_added(old, new, tails=TAILS):
    """Without the added labels and values the text is the old one, byte for byte."""
    rest = [line for line in lines(new) if not line.startswith("_mf")]
    changed = [(a, b) for a, b in zip(lines(old), rest, strict=True) if a != b]
    assert changed == [(a, with_tail(a, tail)) for (a, _), tail in zip(changed, tails, strict=True)]


@FLAVOURED
def test_added_columns_are_numbered_on_and_keep_every_other_byte(tmp_path, text):
    new = written(tmp_path, text)
    assert_only_added(text, new)
    labels = [table(new).lines[i] for i in table(new).labels]
    assert [label.split()[1] for label in labels] == [f"#{i + 1}" for i in range(len(labels))]
    assert [label.split()[0] for label in labels[-2:]] == [f"_{name}" for name in NEW]
    # Line ends of Windows are kept, and a last line without an end stays without one.
    windows = text.replace("\n", "\r\n")
    assert written(tmp_path, windows) == new.replace("\n", "\r\n")
    shorter = text.rstrip("\n ")
    assert_only_added(shorter, written(tmp_path, shorter))
    # Places of an earlier run are replaced.
    assert written(tmp_path, new).split() == new.split()
    more = written(tmp_path, text, columns={**NEW, "mfFactor2": NEW["mfFactor1"]})
    assert written(tmp_path, more).split() == new.split()


@FLAVOURED
def test_starfile_reads_all_columns_of_all_blocks(tmp_path, text):
    new = tmp_path / "new.star"
    new.write_text(written(tmp_path, text))
    before = starfile.read(tmp_path / "particles.star", always_dict=True)
    after = starfile.read(new, always_dict=True)
    assert list(after) == list(before)
    for name, block in before.items():
        if "rlnImageName" in block:
            added = after[name][list(NEW)]
            np.testing.assert_allclose(added, np.column_stack(list(NEW.values())), atol=1e-6)
            after[name] = after[name].drop(columns=added.columns)
        assert after[name].equals(block) if hasattr(block, "columns") else after[name] == block


@settings(max_examples=30)
@given(keep=st.sets(st.integers(0, 5), min_size=1), flavour=st.sampled_from(sorted(FLAVOURS)))
def test_any_choice_of_rows_drops_the_others_and_nothing_else(keep, flavour):
    loop = table(FLAVOURS[flavour])
    kept = np.array(sorted(keep), dtype=int)
    new = with_columns(loop, {"mfRow": [str(i) for i in kept]}, kept)
    found = table(new)
    assert len(lines(new)) == len(loop.lines) + 1 - 6 + len(keep)
    assert [found.lines[i].split() for i in found.rows] == [
        [*loop.lines[loop.rows[i]].split(), str(i)] for i in kept
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "data_\nloop_\n_rlnClassNumber\n_rlnOpticsGroup\n3 1\n4 1\n",
            "data_\nloop_\n_rlnClassNumber\n_rlnOpticsGroup\n_mfFactor1 #3 \n3 1 0.500000\n4 1 0.250000\n",
        ),
        (
            "data_\nloop_\n_rlnClassNumber #1\n_mfFactor1 #2\n_rlnOpticsGroup #3\n  3  0.1   7 \n  4  0.2   8\n",
            "data_\nloop_\n_rlnClassNumber #1\n_rlnOpticsGroup #2\n_mfFactor1 #3 \n  3  7 0.500000\n  4  8 0.250000\n",
        ),
        (
            "data_\nloop_\n_rlnClassNumber\n_rlnName\n3 'a # b'\n4 a#b # c\n",
            "data_\nloop_\n_rlnClassNumber\n_rlnName\n_mfFactor1 #3 \n3 'a # b' 0.500000\n4 a#b 0.250000 # c\n",
        ),
    ],
    ids=["labels without numbers", "places in the midst", "signs of comments"],
)
def test_columns_are_added_behind_the_others(tmp_path, text, expected):
    assert written(tmp_path, text, columns={"mfFactor1": np.array([0.5, 0.25])}) == expected


HEAD = "data_optics\nloop_\n_rlnOpticsGroup #1\n_rlnVoltage #2\n1 300\n2 200\n\n"
TABLE = "data_particles\nloop_\n_rlnOpticsGroup #1\n_rlnOriginXAngst #2\n_rlnOriginYAngst #3\n{} 1 2\n{} 3 {}\n"


def test_a_file_cut_anywhere_is_refused_in_words_or_has_whole_rows(tmp_path):
    path = tmp_path / "cut.star"
    ends = np.cumsum([len(line) for line in lines(RELION_31)])[10:]
    for end in [*ends[:-1:3], *(ends[::3] - 7), *(ends[::3] - 2)]:
        path.write_text(RELION_31[:end])
        try:
            rows = read_particles(path).rows
        except ValueError as error:
            rows = [str(error)] * ("cut.star" in str(error))
        assert 1 <= len(rows) <= 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello\n", "must hold a table of particles .* no block"),
        ("data_micrographs\nloop_\n_rlnName #1\na.mrc\n", "holds data_micrographs"),
        (RELION_5.rsplit("#14 \n", 1)[0] + "#14 \n", "holds no particles"),
        (TABLE.format("1 2", 1, 4), "line 6 has 4 values for 3 columns"),
        (RELION_30[: RELION_30.rindex("5.000000")], "line 27 has 9 values .* truncated"),
        ('data_\nloop_\n_a #1\n_b #2\n"a\nb" 1\n', "line 5 .* one line"),
        ("data_\nloop_\n_rlnImageName #1\n1@a\0b.mrcs\n", "zero bytes"),
        ("data_\nloop_\n_rlnImageName #1\n1@\udcff.mrcs\n", "utf-8"),
        (HEAD + TABLE.format(1, 1.5, 4), "a whole number as rlnOpticsGroup .* has '1.5'"),
        (HEAD + TABLE.format(1, 7, 4), "particles of optics group 7"),
        (HEAD.replace("_rlnOpticsGroup", "_rlnGroup") + TABLE.format(1, 2, 4), "must number its"),
        ("data_optics\n_rlnVoltage 300\n" + TABLE.format(1, 1, 4), "no column _rlnOpticsGroup"),
        (HEAD + TABLE.format(1, 2, "far"), "rlnOriginYAngst .* row 2 has 'far'"),
        (HEAD + TABLE.format(1, 2, "nan"), "a finite number as rlnOriginYAngst .* has 'nan'"),
        (TABLE.format(1, 2, 4).replace("Y", "X"), "Duplicate names"),
        ("data_\nloop_\n_rlnImagePixelSize #1\n0\n", "above 0 as rlnImagePixelSize .* has '0'"),
        (f"data_\nloop_\n_rlnImageName #1\n{'9' * 5000}@a.mrcs\n", "name images as 000001@"),
        ("data_\nloop_\n_mfFactor1 #1\n0.5\n", "holds no columns but those of an earlier"),
    ],
)
def test_a_damaged_file_gives_one_line_that_names_it(tmp_path, text, message):
    path = tmp_path / "a.star"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=message) as error:
        read_particles(path)
    assert "\n" not in str(error.value)
    assert "a.star" in str(error.value)
