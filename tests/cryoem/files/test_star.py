import sys

import numpy as np
import pytest
import starfile
from hypothesis import given
from hypothesis import strategies as st

from manifactor.cryoem.files.formats import particles_with, read_particles
from manifactor.cryoem.files.star import find_blocks, with_columns

from ..star_files import BLOCKS, FLAVOURS, RELION_5, RELION_30, RELION_31

NEW = {
    "mfFactor1": np.linspace(0, 359, 6),
    "mfFactor1Confidence": np.array([1, 0.5, 0.25, 1e-7, 0, 0.999]),
}
RELION_5_TABLE = RELION_5[RELION_5.index("loop_", RELION_5.index("data_particles")) :]
TAILS = [f"{angle:.6f} {sure:.6f}" for angle, sure in zip(*NEW.values(), strict=True)]


@pytest.fixture(params=FLAVOURS)
def flavour(request):
    return request.param


def written(folder, text, *, rows=None, columns=NEW):
    """What becomes of a STAR file with this text when columns are added and rows are chosen."""
    path = folder / "particles.star"
    path.write_bytes(text.encode())
    particles = read_particles(path)
    rows = np.arange(len(particles)) if rows is None else np.asarray(rows)
    new = particles_with(particles[rows], {name: values[rows] for name, values in columns.items()})
    assert path.read_bytes() == text.encode(), "the file itself is never changed"
    return new.decode()


def lines(text):
    return text.splitlines(keepends=True)


def taken_off(old, new, tail):
    """Whether a row is the old one with a tail of values, and else as it was, spaces and end included."""
    body = old.rstrip("\r\n")
    return new in (
        body + joint + tail + old[len(body) :] for joint in ([""] if body[-1].isspace() else [" "])
    )


def assert_only_added(old, new, tails=TAILS):
    """Without the added labels and values the text is the old one, byte for byte."""
    rest = [line for line in lines(new) if not line.startswith("_mf")]
    changed = [(a, b) for a, b in zip(lines(old), rest, strict=True) if a != b]
    assert len(changed) == len(tails)
    assert all(taken_off(a, b, tail) for (a, b), tail in zip(changed, tails, strict=True))


def test_added_columns_keep_every_other_byte(tmp_path, flavour):
    assert_only_added(FLAVOURS[flavour], written(tmp_path, FLAVOURS[flavour]))


def test_added_columns_are_numbered_on(tmp_path, flavour):
    new = find_blocks(written(tmp_path, FLAVOURS[flavour]))[BLOCKS[flavour]]
    count = len(new.labels) - 2
    assert [new.lines[i] for i in new.labels[-2:]] == [
        f"_mfFactor1 #{count + 1} \n",
        f"_mfFactor1Confidence #{count + 2} \n",
    ]
    assert [new.lines[i].split()[1] for i in new.labels] == [f"#{i}" for i in range(1, count + 3)]


def test_starfile_reads_all_columns_of_all_blocks(tmp_path, flavour):
    new = tmp_path / "new.star"
    new.write_text(written(tmp_path, FLAVOURS[flavour]))
    before = starfile.read(tmp_path / "particles.star", always_dict=True)
    after = starfile.read(new, always_dict=True)
    assert list(after) == list(before)
    for name, block in before.items():
        if name == BLOCKS[flavour]:
            assert after[name][list(block.columns)].equals(block)
            assert list(after[name].columns) == [*block.columns, *NEW]
            for column, values in NEW.items():
                np.testing.assert_allclose(after[name][column], values, atol=1e-6)
        else:
            assert after[name].equals(block) if hasattr(block, "columns") else after[name] == block


@given(keep=st.sets(st.integers(0, 5)), flavour=st.sampled_from(sorted(FLAVOURS)))
def test_any_choice_of_rows_drops_the_others_and_nothing_else(keep, flavour):
    loop = find_blocks(FLAVOURS[flavour])[BLOCKS[flavour]]
    kept = np.array(sorted(keep), dtype=int)
    new = with_columns(loop, {"mfRow": [str(i) for i in kept]}, kept)
    found = find_blocks(new)[BLOCKS[flavour]] if keep else None
    assert len(lines(new)) == len(loop.lines) + 1 - 6 + len(keep)
    if found:
        assert [int(found.lines[i].split()[-1]) for i in found.rows] == sorted(keep)
        assert [found.lines[i].split()[:-1] for i in found.rows] == [
            loop.lines[loop.rows[i]].split() for i in sorted(keep)
        ]


def test_values_follow_their_particles_in_whatever_order_they_come(tmp_path):
    sorted_rows = written(tmp_path, RELION_31, rows=[0, 2, 4])
    assert written(tmp_path, RELION_31, rows=[4, 0, 2]) == sorted_rows


def test_line_ends_of_windows_are_kept(tmp_path, flavour):
    windows = FLAVOURS[flavour].replace("\n", "\r\n")
    new = written(tmp_path, windows)
    assert_only_added(windows, new)
    assert new == written(tmp_path, FLAVOURS[flavour]).replace("\n", "\r\n")


def test_comments_and_blank_lines_are_kept(tmp_path):
    head, rows = RELION_5.rsplit("#14 \n", 1)
    first, rest = rows.split("\n", 1)
    text = f"# made by hand\n{head}#14 \n\n# the first\n{first}\n   # between\n{rest}\n\n# Frühling, the end\n"
    new = written(tmp_path, text)
    assert_only_added(text, new)


def test_a_comment_behind_a_row_stays_behind_its_values(tmp_path):
    text = RELION_5.replace("group_01 \n", "group_01 # a doubtful one\n", 1)
    (tmp_path / "new.star").write_text(written(tmp_path, text))
    assert f"group_01 {TAILS[0]} # a doubtful one\n" in (tmp_path / "new.star").read_text()
    table = starfile.read(tmp_path / "new.star")["particles"]
    np.testing.assert_allclose(table["mfFactor1"], NEW["mfFactor1"], atol=1e-6)


def test_a_last_line_without_end_stays_without_one(tmp_path, flavour):
    text = FLAVOURS[flavour].rstrip("\n ")
    new = written(tmp_path, text)
    assert_only_added(text, new)
    assert new.endswith(" " + TAILS[-1])


def test_rows_without_trailing_space_and_with_tabs_get_one_space(tmp_path):
    text = "\n".join("\t".join(line.split()) for line in RELION_31.splitlines()) + "\n"
    new = written(tmp_path, text)
    assert_only_added(text, new)
    assert f"\t-2\t1 {TAILS[0]}\n" in new


def test_labels_without_numbers_are_labels(tmp_path):
    text = "data_\nloop_\n_rlnClassNumber\n_rlnOpticsGroup\n3 1\n4 1\n"
    columns = {"mfFactor1": np.array([0.5, 0.25])}
    assert written(tmp_path, text, columns=columns) == (
        "data_\nloop_\n_rlnClassNumber\n_rlnOpticsGroup\n_mfFactor1 #3 \n3 1 0.500000\n4 1 0.250000\n"
    )


def test_places_of_an_earlier_run_are_replaced(tmp_path, flavour):
    once = written(tmp_path, FLAVOURS[flavour])
    assert written(tmp_path, once).split() == once.split()
    more = {**NEW, "mfFactor2": NEW["mfFactor1"]}
    twice = written(tmp_path, FLAVOURS[flavour], columns=more)
    assert written(tmp_path, twice).split() == once.split()


def test_places_in_the_midst_of_other_columns_are_replaced(tmp_path):
    text = "data_\nloop_\n_rlnClassNumber #1\n_mfFactor1 #2\n_rlnOpticsGroup #3\n  3  0.1   7 \n  4  0.2   8\n"
    new = written(tmp_path, text, columns={"mfFactor1": np.array([0.5, 0.25])})
    assert new == (
        "data_\nloop_\n_rlnClassNumber #1\n_rlnOpticsGroup #2\n_mfFactor1 #3 \n  3  7 0.500000\n  4  8 0.250000\n"
    )


def test_the_only_table_with_images_is_that_of_the_particles(tmp_path):
    text = RELION_5.replace("data_particles", "data_subset")
    assert_only_added(text, written(tmp_path, text))


def test_a_table_without_rows_is_refused(tmp_path, flavour):
    loop = find_blocks(FLAVOURS[flavour])[BLOCKS[flavour]]
    empty = with_columns(loop, {}, np.array([], dtype=int))
    with pytest.raises(ValueError, match=r"particles.star holds no particles"):
        written(tmp_path, empty)


def test_a_missing_package_is_named_with_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "starfile", None)
    with pytest.raises(ValueError, match=r"starfile: pip install 'manifactor\[cryoem\]'"):
        written(tmp_path, RELION_30)


def test_a_mark_at_the_start_of_the_file_is_kept(tmp_path):
    text = "\ufeffdata_particles\n" + RELION_5_TABLE
    assert written(tmp_path, text, columns={}) == text


def test_a_file_that_was_replaced_is_read_anew_after_an_error(tmp_path):
    path = tmp_path / "a.star"
    path.write_text("data_optics\n_rlnOpticsGroup\n" + TABLE.format(1, 1, 4))
    with pytest.raises(ValueError, match="is not a STAR file that can be read"):
        read_particles(path)
    path.write_text(TABLE.format(1, 1, 4))
    assert len(read_particles(path)) == 2


HEAD = "data_optics\nloop_\n_rlnOpticsGroup #1\n_rlnVoltage #2\n1 300\n2 200\n\n"
TABLE = "data_particles\nloop_\n_rlnOpticsGroup #1\n_rlnOriginXAngst #2\n_rlnOriginYAngst #3\n{} 1 2\n{} 3 {}\n"


def test_a_file_cut_anywhere_is_refused_in_words_or_has_whole_rows(tmp_path):
    path = tmp_path / "cut.star"
    ends = np.cumsum([len(line) for line in lines(RELION_31)])
    for end in [*ends[:-1], *(ends - 7)[1:], *(ends - 2)[1:]]:
        path.write_text(RELION_31[:end])
        message, count = "", 0
        try:
            count = len(read_particles(path))
        except ValueError as error:
            message = str(error)
        assert "cut.star" in message or 1 <= count <= 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must hold a table of particles .* no block"),
        ("hello\n", "must hold a table of particles .* no block"),
        ("data_micrographs\nloop_\n_rlnName #1\na.mrc\n", "holds data_micrographs"),
        (TABLE.format("1 2", 1, 4), "line 6 has 4 values for 3 columns"),
        (RELION_30[: RELION_30.rindex("5.000000")], "line 27 has 9 values .* truncated"),
        ('data_\nloop_\n_a #1\n_b #2\n"a\nb" 1\n', "line 5 .* one line"),
        ("data_\nloop_\n_rlnName #1\na#b\n", "line 4 has a # within a value"),
        ("data_\nloop_\n_rlnImageName #1\n1@a\0b.mrcs\n", "zero bytes"),
        ("data_\nloop_\n_rlnImageName #1\n1@\udcff.mrcs\n", "utf-8"),
        ("data_optics\ndata_particles\n" + RELION_5_TABLE, "data_optics is empty"),
        ("# coding: none\ndata_\nloop_\n_a #1\n1\n", "table data_ cannot be told"),
        ("data_particles\nloop_\n1 2 3\n", "line 3 has 3 values for 0 columns"),
        (
            HEAD.replace("2 200", "two 200") + TABLE.format(1, 2, 4),
            "OpticsGroup .* row 2 has 'two'",
        ),
        (HEAD + TABLE.format(1, 1.5, 4), "a whole number as rlnOpticsGroup .* has '1.5'"),
        (HEAD + TABLE.format(1, 7, 4), "particles of optics group 7"),
        (HEAD.replace("_rlnOpticsGroup", "_rlnGroup") + TABLE.format(1, 2, 4), "must number its"),
        ("data_optics\n_rlnVoltage 300\n" + TABLE.format(1, 1, 4), "no column _rlnOpticsGroup"),
        ("data_optics\n_rlnOpticsGroup\n" + TABLE.format(1, 1, 4), "not enough values"),
        (HEAD + TABLE.format(1, 2, "far"), "rlnOriginYAngst .* row 2 has 'far'"),
        (HEAD + TABLE.format(1, 2, "nan"), "a finite number as rlnOriginYAngst .* has 'nan'"),
        (HEAD + TABLE.format(1, 2, "1e400"), "a finite number as rlnOriginYAngst .* has 'inf'"),
        (TABLE.format(1, 2, 4).replace("Y", "X"), "several columns _rlnOriginXAngst"),
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
