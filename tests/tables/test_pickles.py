"""Pickles of numbers are read, and nothing in a pickle is ever run."""

import pickle

import numpy as np
import pytest

from manifactor.tables.pickles import STAND_INS, read_pickled_array, read_pickled_numbers

every_protocol = pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))


@pytest.fixture
def read(tmp_path):
    def array_of(content, read=read_pickled_array):
        path = tmp_path / "z.pkl"
        path.write_bytes(content)
        return read(path)

    return array_of


@every_protocol
def test_arrays_of_every_type_order_and_shape_come_back(read, rng, protocol):
    kinds = ("<f4", "<f8", ">f4", "<f2", "<i4", "<i8", ">i2", "u1", "?")
    array = rng.normal(size=(6, 4))
    shapes = (np.asfortranarray(array), array[::2, ::-1], array[0], array.T, np.array(3.5))
    for each in (*(rng.integers(0, 2, size=(5, 3)).astype(kind) for kind in kinds), *shapes):
        found = read(pickle.dumps(each, protocol=protocol))
        assert found.dtype.newbyteorder("=") == each.dtype.newbyteorder("=")
        assert found.shape == each.shape
        assert np.array_equal(found, each)


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


@every_protocol
def test_a_pickle_that_would_make_a_file_is_refused_and_makes_none(read, tmp_path, protocol):
    harm = tmp_path / "harm"
    bomb = Bomb(harm)
    match = r"z.pkl was refused and nothing in it was run: it (asks for .\w+.open|holds)"
    for hidden in (
        bomb,
        objects(bomb, 1.0),
        objects(objects(bomb, 2.0), 1.0),
        {"z": [bomb]},
        {bomb},
        (np.zeros(3), bomb),
        np.array([(1, bomb)], dtype=[("uid", int), ("z", object)]),
    ):
        content = pickle.dumps(hidden, protocol=protocol)
        for reader in (read_pickled_array, read_pickled_numbers):
            with pytest.raises(ValueError, match=match):
                read(content, reader)
    assert not harm.exists()
    pickle.loads(pickle.dumps(bomb)).close()  # elsewhere, it does make the file
    assert harm.exists()


NAMES = """os system, posix system, subprocess Popen, builtins eval, builtins exec, builtins getattr,
builtins __import__, functools partial, operator attrgetter, codecs encode, _codecs decode,
numpy load, numpy fromfile, numpy memmap, numpy ndarray.tofile, numpy._core.multiarray fromstring,
numpy.core.numeric load, numpy.ma.core _mareconstruct, numpy.f2py.diagnose run_command,
torch._utils _rebuild_tensor_v2, torch.storage _load_from_bytes, pandas.core.frame DataFrame,
collections OrderedDict"""


def test_all_other_names_are_refused_by_name(read):
    for each in NAMES.replace("\n", " ").split(", "):
        module, name = each.split()
        match = f"nothing in it was run: it asks for .{module}.{name}"
        # A pickle that calls a name with nothing.
        with pytest.raises(ValueError, match=match):
            read(f"c{module}\n{name}\n(tR.".encode())


# A void type with an object field and no flag that says so: numpy itself would follow the bytes as
# a pointer. And fields in the state of a plain type.
FORGED = (
    b"cnumpy\ndtype\n(S'V8'\nI0\nI1\ntR"
    b"(I3\nS'|'\nN(S'a'\nt(dS'a'\n(cnumpy\ndtype\n(S'O8'\nI0\nI1\ntRI0\ntsI8\nI1\nI0\ntb."
)
STATE = b"cnumpy\ndtype\n(S'f8'\nI0\nI1\ntR(I3\nS'<'\nN(S'a'\nt(dI8\nI1\nI0\ntb."
SHORT = pickle.dumps(np.zeros(4), protocol=2).replace(b"K\x04\x85", b"K\x7f\x85")
CONTROL = b"\x80\x04\x8c\x02os\x8c\x07a\nb\x1b[2J\x93."
# BUILD sets attributes of whatever lies on the stack.
SETTING = b"\x80\x04c_codecs\nencode\nN}X\x01\x00\x00\x00aK\x01s\x86b."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (FORGED, "holds values of another type"),
        (STATE, "describes a compound type"),
        (SHORT, "holds 32 bytes for an array of another"),
        (CONTROL, r"it asks for 'os.a.nb.x1b\[2J'"),
        (SETTING, "one pickled array of numbers; got function"),
        (pickle.dumps([np.arange(100.0)] * 2000), "one pickled array of numbers; got list"),
        *(
            (pickle.dumps(value), f"one pickled array of numbers; got {type(value).__name__}")
            for value in ([1.0, 2.0], {"z": 1.0}, (np.zeros((2, 3)), np.zeros(2)), "text", None)
        ),
        *(
            (pickle.dumps(value), r"z.pkl was refused and nothing in it was run: it holds")
            for value in (
                objects(1.0, 2.0),
                np.array(["a"]),
                np.zeros(2, "c8"),
                np.zeros(2, "i8,i8"),
            )
        ),
    ],
)
def test_what_is_not_an_array_of_numbers_is_refused(read, content, message):
    with pytest.raises(ValueError, match=message):
        read(content)
    assert not any(hasattr(made, "a") for made in STAND_INS.values())


@every_protocol
def test_a_truncated_file_is_refused(read, protocol):
    content = pickle.dumps(np.arange(6.0), protocol=protocol)
    match = r"z.pkl (is not a pickled numpy array|was refused|must hold)"
    for length in range(0, len(content), 7):
        with pytest.raises(ValueError, match=match) as error:
            read(content[:length])
        assert "\n" not in str(error.value)


@every_protocol
def test_whole_numbers_come_in_lists_sets_and_arrays(read, protocol):
    numbers = [np.int64(4), np.int32(2)]
    for values in ([3, 1, 2], (7,), {5, 1}, numbers, {np.int64(9)}, np.arange(3)):
        expected = sorted(values) if isinstance(values, set) else list(values)
        found = read(pickle.dumps(values, protocol=protocol), read_pickled_numbers)
        assert found.tolist() == expected
    for values in ([1.5], {"a"}, [[1]], [True], [10**30], {1, "a"}):
        with pytest.raises(ValueError, match="whole numbers"):
            read(pickle.dumps(values, protocol=protocol), read_pickled_numbers)
    with pytest.raises(ValueError, match="one pickled array of numbers; got dict"):
        read(pickle.dumps({1: "a"}, protocol=protocol), read_pickled_numbers)
    # A set that repeats its items has each once.
    repeated = b"\x80\x04\x8f(K\x05K\x02K\x05\x90."
    assert read(repeated, read_pickled_numbers).tolist() == [2, 5]
