import os
import pickle
import struct
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifactor.tables.pickles import STAND_INS, read_pickled_array, read_pickled_numbers

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


@pytest.fixture
def read(tmp_path):
    def array_of(content):
        path = tmp_path / "z.pkl"
        path.write_bytes(content)
        return read_pickled_array(path)

    return array_of


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", ["<f4", "<f8", ">f4", "<f2", "<i4", "<i8", ">i2", "u1", "?"])
def test_arrays_of_every_protocol_come_back(read, rng, protocol, kind):
    array = rng.integers(0, 2, size=(5, 3)).astype(kind)
    found = read(pickle.dumps(array, protocol=protocol))
    assert found.dtype.newbyteorder("=") == array.dtype.newbyteorder("=")
    assert np.array_equal(found, array)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "arrange",
    [
        np.asfortranarray,
        lambda a: a[::2, ::-1],
        lambda a: a[0],
        lambda a: a.T,
        lambda a: np.array(3.5),
    ],
    ids=["columns", "steps", "flat", "turned", "no axes"],
)
def test_arrays_of_every_order_and_shape_come_back(read, rng, protocol, arrange):
    array = arrange(rng.normal(size=(6, 4)))
    found = read(pickle.dumps(array, protocol=protocol))
    assert found.shape == array.shape
    assert np.array_equal(found, array)


def test_of_two_objects_the_first_is_read(read, rng):
    mean, variance = rng.normal(size=(2, 10, 8)).astype(
        np.float32
    )  # z_mu and z_logvar, as cryoDRGN writes them
    assert np.array_equal(read(pickle.dumps(mean) + pickle.dumps(variance)), mean)


def as_old_numpy(content):
    """A pickle of protocol 4 or 5 as numpy 1 wrote it: numpy.core where today's says numpy._core."""
    start = content.index(b"numpy._core") - 2
    old = (
        content[:start]
        + b"\x8c"
        + bytes([content[start + 1] - 1])
        + content[start + 2 :].replace(b"._core", b".core", 1)
    )
    (length,) = struct.unpack("<Q", old[3:11])
    return old[:3] + struct.pack("<Q", length - 1) + old[11:]


@pytest.mark.parametrize("protocol", [4, 5])
def test_arrays_of_older_numpy_are_read_without_a_word(read, rng, protocol):
    array = rng.normal(size=(5, 3))
    content = pickle.dumps(array, protocol=protocol)
    if b"numpy._core" in content:  # written by numpy 2
        content = as_old_numpy(content)
    assert b"numpy.core" in content
    with warnings.catch_warnings(action="error"):
        assert np.array_equal(read(content), array)


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def objects(*values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "hide",
    [
        lambda bomb: bomb,
        lambda bomb: objects(bomb, 1.0),
        lambda bomb: objects(objects(bomb, 2.0), 1.0),
        lambda bomb: {"z": [bomb]},
        lambda bomb: (np.zeros(3), bomb),
        lambda bomb: np.array([(1, bomb)], dtype=[("uid", int), ("z", object)]),
    ],
    ids=[
        "bare",
        "in an array",
        "in an array of arrays",
        "in a list of a dict",
        "behind an array",
        "in a field",
    ],
)
def test_a_pickle_that_would_make_a_file_is_refused_and_makes_none(read, tmp_path, hide, protocol):
    harm = tmp_path / "harm"
    with pytest.raises(
        ValueError,
        match=r"z.pkl was refused and nothing in it was run: it (asks for .\w+.open|holds)",
    ):
        read(pickle.dumps(hide(Bomb(harm)), protocol=protocol))
    assert not harm.exists()


def test_the_same_pickle_does_make_a_file_elsewhere(tmp_path):
    pickle.loads(pickle.dumps(Bomb(tmp_path / "harm"))).close()
    assert (tmp_path / "harm").exists()


NAMES = [
    ("os", "system"),
    ("posix", "system"),
    ("subprocess", "Popen"),
    ("builtins", "eval"),
    ("builtins", "exec"),
    ("builtins", "getattr"),
    ("builtins", "__import__"),
    ("functools", "partial"),
    ("operator", "attrgetter"),
    ("codecs", "encode"),
    ("_codecs", "decode"),
    ("numpy", "load"),
    ("numpy", "fromfile"),
    ("numpy", "memmap"),
    ("numpy", "ndarray.tofile"),
    ("numpy._core.multiarray", "fromstring"),
    ("numpy.core.numeric", "load"),
    ("numpy.ma.core", "_mareconstruct"),
    ("numpy.f2py.diagnose", "run_command"),
    ("torch._utils", "_rebuild_tensor_v2"),
    ("torch.storage", "_load_from_bytes"),
    ("pandas.core.frame", "DataFrame"),
    ("collections", "OrderedDict"),
]


def called(module, name, protocol):
    """A pickle that calls a name with nothing, in the words of an old or a new protocol."""
    if protocol == 0:
        return f"c{module}\n{name}\n(tR.".encode()
    short = b"".join(b"\x8c" + bytes([len(part)]) + part.encode() for part in (module, name))
    return b"\x80\x04" + short + b"\x93)R."


@pytest.mark.parametrize("protocol", [0, 4])
@pytest.mark.parametrize(("module", "name"), NAMES)
def test_all_other_names_are_refused_by_name(read, module, name, protocol):
    with pytest.raises(ValueError, match=f"nothing in it was run: it asks for .{module}.{name}"):
        read(called(module, name, protocol))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ([1.0, 2.0], "list"),
        ({"z": 1.0}, "dict"),
        ((1, 2), "tuple"),
        ((np.zeros((2, 3, 3)), np.zeros((2, 2))), "tuple"),
        ("text", "str"),
        (None, "NoneType"),
        ([np.zeros(3)], "list"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused_by_kind(read, value, kind):
    with pytest.raises(
        ValueError, match=f"z.pkl must hold one pickled array of numbers; got {kind}."
    ):
        read(pickle.dumps(value))


@pytest.mark.parametrize(
    "value",
    [
        objects(1.0, 2.0),
        np.array(["a"]),
        np.zeros(2, dtype=complex),
        np.zeros(2, dtype=[("a", int)]),
    ],
)
def test_arrays_of_other_things_than_numbers_are_refused(read, value):
    with pytest.raises(ValueError, match=r"z.pkl was refused and nothing in it was run: it holds"):
        read(pickle.dumps(value))


def test_a_forged_type_cannot_make_numpy_read_foreign_memory(read):
    """A void type with an object field and no flag that says so: numpy itself would follow the bytes as a pointer."""
    forged = (
        b"cnumpy\ndtype\n(S'V8'\nI0\nI1\ntR"
        b"(I3\nS'|'\nN(S'a'\nt(dS'a'\n(cnumpy\ndtype\n(S'O8'\nI0\nI1\ntRI0\ntsI8\nI1\nI0\ntb."
    )
    with pytest.raises(ValueError, match="holds values of another type"):
        read(forged)
    state = b"cnumpy\ndtype\n(S'f8'\nI0\nI1\ntR(I3\nS'<'\nN(S'a'\nt(dI8\nI1\nI0\ntb."
    with pytest.raises(ValueError, match=r"describes a compound type"):
        read(state)


def test_an_array_must_have_the_bytes_of_its_shape(read):
    content = pickle.dumps(np.zeros(4), protocol=2).replace(b"K\x04\x85", b"K\x7f\x85")
    with pytest.raises(ValueError, match="holds 32 bytes for an array of another"):
        read(content)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_truncated_file_is_refused(read, protocol):
    content = pickle.dumps(np.arange(6.0), protocol=protocol)
    for length in range(0, len(content), 7):
        with pytest.raises(
            ValueError, match=r"z.pkl (is not a pickled numpy array|was refused|must hold)"
        ) as error:
            read(content[:length])
        assert "\n" not in str(error.value)


@given(content=st.binary(max_size=60))
def test_any_bytes_are_an_array_or_refused_in_words(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.pkl"
    path.write_bytes(content)
    message = ""
    try:
        read_pickled_array(path)
    except ValueError as error:
        message = str(error)
    assert not message or "any.pkl" in message


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "values",
    [[3, 1, 2], (7,), {5, 1}, [np.int64(4), np.int32(2)], {np.int64(9)}, np.arange(3)],
    ids=["list", "tuple", "set", "numpy's numbers", "a set of these", "array"],
)
def test_whole_numbers_come_in_lists_sets_and_arrays(tmp_path, protocol, values):
    path = tmp_path / "ind.pkl"
    path.write_bytes(pickle.dumps(values, protocol=protocol))
    expected = sorted(values) if isinstance(values, set) else list(values)
    assert read_pickled_numbers(path).tolist() == expected


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("values", [[1.5], {"a"}, [[1]], [True], [10**30], {1, "a"}])
def test_lists_and_sets_of_other_things_are_refused(tmp_path, protocol, values):
    path = tmp_path / "ind.pkl"
    path.write_bytes(pickle.dumps(values, protocol=protocol))
    with pytest.raises(ValueError, match="whole numbers"):
        read_pickled_numbers(path)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_set_that_would_make_a_file_is_refused_and_makes_none(tmp_path, protocol):
    harm, path = tmp_path / "harm", tmp_path / "ind.pkl"
    path.write_bytes(pickle.dumps({Bomb(harm)}, protocol=protocol))
    with pytest.raises(ValueError, match="nothing in it was run"):
        read_pickled_numbers(path)
    assert not harm.exists()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"z.pkl does not exist"):
        read_pickled_array(tmp_path / "z.pkl")


def memory_of(read, content):
    """Peak of the memory that a refused pickle takes, in bytes."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"z\.pkl (is not|was refused|must hold)"):
            read(content)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def counted(code, size, length=8):
    """An operation whose bytes are said to be many, and are few."""
    return b"\x80\x05" + code + size.to_bytes(length, "little") + b"abc."


HUGE = 16 * 2**30


@pytest.mark.parametrize(
    "content",
    [
        counted(pickle.BINBYTES8, HUGE),
        counted(pickle.BINUNICODE8, HUGE),
        counted(pickle.BYTEARRAY8, HUGE),
        counted(pickle.FRAME, HUGE),
        counted(pickle.LONG4, 2**31 - 1, 4),
        counted(pickle.BINBYTES, 2**32 - 1, 4),
        counted(pickle.BINSTRING, 2**31 - 1, 4),
        b"\x80\x05N" + pickle.LONG_BINPUT + b"\xff\xff\xff\x7f.",
        b"Np2147483647\n.",
    ],
    ids=lambda content: repr(content[:4]),
)
def test_sizes_in_a_pickle_are_not_believed(read, content):
    assert memory_of(read, content) < 2**20


def test_one_array_used_many_times_is_one_array(read):
    array = np.arange(100.0)
    with pytest.raises(ValueError, match="one pickled array of numbers; got list"):
        read(pickle.dumps([array] * 2000))


def test_functions_of_the_program_cannot_be_changed(read):
    # BUILD sets attributes of whatever lies on the stack.
    content = b"\x80\x04c_codecs\nencode\nN}X\x01\x00\x00\x00aK\x01s\x86b."
    with pytest.raises(ValueError, match="one pickled array of numbers; got function"):
        read(content)
    assert not any(hasattr(made, "a") for made in STAND_INS.values())


def test_a_name_with_control_characters_is_shown_without_them(read):
    name = b"a\nb\x1b[2J"
    content = b"\x80\x04\x8c\x02os\x8c" + bytes([len(name)]) + name + b"\x93."
    with pytest.raises(ValueError, match=r"it asks for 'os.a.nb.x1b\[2J'"):
        read(content)


def test_a_pickle_larger_than_the_memory_says_how_much_it_needs(read, monkeypatch):
    monkeypatch.setattr("manifactor._support.memory.available_memory", lambda: 1000)
    with pytest.raises(ValueError, match=r"would take .* GB of memory, and .* are avail"):
        read(pickle.dumps(np.zeros(1000)))


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "z.pkl")
    with pytest.raises(ValueError, match=r"must be a file; .*z.pkl is a named pipe"):
        read_pickled_array(tmp_path / "z.pkl")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("values", [{"z": 1}, {1: "a", 2.5: (1,)}, {}])
def test_a_dict_is_called_a_dict(tmp_path, protocol, values):
    path = tmp_path / "ind.pkl"
    path.write_bytes(pickle.dumps(values, protocol=protocol))
    with pytest.raises(ValueError, match="one pickled array of numbers; got dict"):
        read_pickled_numbers(path)


def test_a_set_that_repeats_its_items_has_each_once(tmp_path):
    path = tmp_path / "ind.pkl"
    path.write_bytes(b"\x80\x04\x8f(K\x05K\x02K\x05\x90.")
    assert read_pickled_numbers(path).tolist() == [2, 5]
