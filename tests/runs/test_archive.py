import json
import pickle
import re
from copy import copy
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsTransformer

from manifactor import DiffusionMap, ManifoldFactorizer, datasets, load, save
from manifactor._support.parameters import Choice
from manifactor.operators.pipeline import diffuse
from manifactor.runs.archive import read_tree, write_tree
from manifactor.runs.folder import read_record, read_run, write_run

from ..conftest import read_only
from ..factoring.candidates import factored


@pytest.fixture(scope="module")
def samples():
    return read_only(datasets.sample("torus", 500, random_state=0)[0])


@pytest.fixture(scope="module")
def fit(samples):
    return ManifoldFactorizer(2, random_state=0).fit(samples)


@pytest.fixture
def saved(fit, tmp_path):
    """A fit in a file."""
    save(fit, tmp_path / "fit.npz")
    return tmp_path / "fit.npz"


@pytest.fixture
def run(fit, tmp_path):
    write_run(fit, tmp_path / "run", record={"command": "fit", "input": "X"})
    return tmp_path / "run"


@pytest.mark.medium
def test_a_fit_comes_back_as_it_was(fit, samples, saved):
    back = load(saved)
    assert back.spectrum_.solver == fit.spectrum_.solver
    assert back.bandwidth_curve_.choice == fit.bandwidth_curve_.choice
    # Arrays can be read without the package.
    with np.load(saved, allow_pickle=False) as stored:
        values = stored["factorization_/diffusion/distinct/eigenvalues"]
        np.testing.assert_array_equal(values, fit.spectrum_.eigenvalues)
        assert json.loads(stored["manifest"].tobytes())["estimator"] == "ManifoldFactorizer"
    np.testing.assert_array_equal(back.fit(samples).coordinates(), fit.coordinates())


def test_a_diffusion_map_comes_back_but_for_a_search_of_the_caller_s_own(samples, tmp_path):
    path, search = tmp_path / "map.npz", KNeighborsTransformer(n_neighbors=20)
    for how in ({"bandwidth": "local"}, {"neighbors": search, "callback": print}):
        fit = DiffusionMap(8, random_state=0, **how).fit(samples)
        save(fit, path)
        back = load(path)
        np.testing.assert_array_equal(back.spectrum_.functions, fit.spectrum_.functions)
        if "neighbors" not in how:
            np.testing.assert_array_equal(back.transform(samples[:20]), fit.transform(samples[:20]))
    with pytest.raises(ValueError, match="which archives do not hold; fit again"):
        back.transform(samples)


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was executed",))


def npz(**arrays):
    """The bytes of an archive of these arrays."""
    file = BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def test_foreign_files_are_refused_and_never_executed(saved):
    for content in (
        *(b"hello", b"", pickle.dumps(Bomb()), npz(X=np.ones(3))),
        npz(manifest=np.array([Bomb()], dtype=object)),
        npz(manifest=np.frombuffer(b'{"format": "other"}', dtype=np.uint8)),
        saved.read_bytes()[: saved.stat().st_size // 2],
    ):
        saved.write_bytes(content)
        with pytest.raises(ValueError, match="is not a"):
            load(saved)


def tampered(path, change, *, checksums=False):
    """Rewrite an archive after ``change(manifest, arrays)``; those of 0.2.0 have no checksums."""
    with np.load(path) as stored:
        arrays = dict(stored)
    manifest = json.loads(arrays["manifest"].tobytes())
    change(manifest, arrays)
    text = json.dumps(manifest)
    if not checksums:
        text = re.sub(r', "checksum": \d+', "", text)
    arrays["manifest"] = np.frombuffer(text.encode(), dtype=np.uint8)
    np.savez(path, **arrays)


DIFFUSION = "factorization_/diffusion"


def put(name, value, *place):
    """A change of one value of an array."""

    def change(manifest, arrays):
        array = arrays[f"{DIFFUSION}/{name}"] = arrays[f"{DIFFUSION}/{name}"].copy()
        array[place or 0] = value

    return change


def replaced(value, *path):
    """A change of the manifest."""

    def change(manifest, arrays):
        entry = manifest
        for key in path[:-1]:
            entry = entry[key]
        entry[path[-1]] = value

    return change


FIELDS = ("fitted", "factorization_", "fields")
CHANGES = {
    "another class": replaced("Popen", *FIELDS[:2], "record"),
    "no graph": replaced({}, *FIELDS, "diffusion", "fields"),
    "columns of the kernel": put("affinity/kernel/indices", 10**6),
    # The tree would name a neighbour that does not exist.
    "samples of nan": put("samples", np.nan, 3, 1),
    "rows of the kernel": put("affinity/kernel/indptr", 7),
    "rows beyond the kernel": put("affinity/kernel/indptr", 10**6, -1),
    "a number for a topology": replaced(
        {"value": 3}, *FIELDS, "factors", "tuple", 0, "fields", "topology"
    ),
    "a text for seconds": replaced({"value": "long"}, "fitted", "timings_"),
    "not fitted": lambda manifest, _: manifest["fitted"].pop("factorization_"),
    "another estimator": replaced("DiffusionMap", "estimator"),
    "a wrong parameter": replaced("many", "parameters", "n_neighbors"),
}


def test_an_array_with_another_number_is_refused(saved):
    tampered(saved, put("affinity/degree", 0.5), checksums=True)
    with pytest.raises(ValueError, match="degree is not the array that was written"):
        load(saved)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_tampered_archive_is_refused_in_one_line(saved, change):
    tampered(saved, change)
    what = (
        ".*Factor.topology has another type" if change is CHANGES["a number for a topology"] else ""
    )
    with pytest.raises(
        ValueError, match=f"{saved} is not a whole manifactor archive{what}.*$"
    ) as error:
        load(saved)
    assert "\n" not in str(error.value)


def test_what_an_archive_of_another_release_has_more_or_less_does_not_matter(fit, saved):
    def change(manifest, arrays):
        record = manifest["fitted"]["factorization_"]["fields"]["evidence"]["fields"]
        record["mood"] = {"record": "Popen", "fields": {}}
        for name in ("details", "curve", "probability", "probabilities"):
            del record[name]
        manifest["fitted"]["transform"] = {"value": "x"}
        manifest["parameters"]["colour"] = 1

    tampered(saved, change)
    back = load(saved)
    assert (back.evidence_.details, back.evidence_.summary) == ("", back.verdict_)
    assert callable(back.transform)
    np.testing.assert_array_equal(back.coordinates(), fit.coordinates())


def test_an_archive_of_release_0_2_is_read():
    back = load(Path(__file__).with_name("fit-0.2.0.npz"))
    assert (back.verdict_, back.n_factors_) == ("partial", 2)
    np.testing.assert_allclose(back.coordinates()[0], [0.4386916068207006, 0.6952794869667761])
    placed = back.coordinates(back.diffusion_.samples[:5] + 1e-6)
    np.testing.assert_allclose(placed, back.coordinates()[:5], atol=0.05)


def test_an_archive_of_another_version_says_which_release_reads_it(tmp_path):
    manifest = b'{"format": "manifactor", "version": 99, "written_by": "9.0"}'
    np.savez(tmp_path / "fit.npz", manifest=np.frombuffer(manifest, dtype=np.uint8))
    with pytest.raises(ValueError, match=r"archive version 99.*Read it with manifactor 9\.0"):
        load(tmp_path / "fit.npz")


def test_what_can_be_neither_read_nor_written_is_named(fit, tmp_path):
    with pytest.raises(ValueError, match="is a folder, but not a run folder"):
        load(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"nothing\.npz does not exist\. Name a"):
        load(tmp_path / "nothing.npz")
    with pytest.raises(ValueError, match="`path` must be a file to write"):
        save(fit, tmp_path)
    with pytest.raises(ValueError, match=r"after fit\(\); got ManifoldFactorizer\(\)"):
        save(ManifoldFactorizer(), tmp_path / "fit.npz")
    assert not list(tmp_path.iterdir())


def test_what_a_killed_save_has_left_is_removed_by_the_next(fit, saved):
    (saved.parent / f".{saved.name}.new.abcdefgh").touch()
    save(fit, saved)
    assert list(saved.parent.iterdir()) == [saved]


def test_a_run_folder_holds_fit_record_and_coordinates(fit, run):
    record, back = read_run(run)
    assert record["verdict"] == back.verdict_ == fit.verdict_
    assert record["probability"] == back.evidence_.probability == fit.evidence_.probability
    assert tuple(record["probabilities"]) == back.evidence_.probabilities
    assert record["versions"].keys() >= {"manifactor", "numpy", "scipy", "sklearn"}
    table = np.genfromtxt(run / "coordinates.csv", delimiter=",", names=True)
    assert table.dtype.names[:4] == ("sample", "factor1", "factor1_confidence", "factor2")
    np.testing.assert_allclose(table["factor1"], np.degrees(fit.factors_[0].coordinate), rtol=1e-6)


def test_a_probability_that_is_not_known_comes_back_from_archive_and_record(fit, tmp_path):
    evidence = replace(fit.evidence_, probability=np.nan, probabilities=())
    unknown = copy(fit)
    unknown.factorization_ = replace(fit.factorization_, evidence=evidence)
    write_run(unknown, tmp_path / "run", record={"command": "fit", "input": "X"})
    record, back = read_run(tmp_path / "run")
    assert [record["probability"], record["probabilities"]] == [None, []]
    assert str(back.evidence_) == str(evidence)
    assert np.isnan(back.evidence_.probability)


def test_a_run_is_replaced_when_told_and_nothing_else_ever(fit, run):
    with pytest.raises(ValueError, match=r"must not exist yet; .*--overwrite"):
        write_run(fit, run, record={})
    write_run(fit, run, record={"again": True}, overwrite=True)
    assert read_run(run)[0]["again"]
    precious = run.parent / "precious"
    precious.mkdir()
    with pytest.raises(ValueError, match="It is not a run folder; choose another"):
        write_run(fit, precious, record={}, overwrite=True)
    assert precious.exists()


def test_the_record_of_a_run_of_the_version_before_is_read(run):
    record = read_record(run)
    (run / "run.json").write_text(json.dumps({**record, "version": 7}))
    assert read_record(run)["version"] == 7
    (run / "run.json").write_text(json.dumps({**record, "version": 6}))
    with pytest.raises(ValueError, match="has version 6; this release reads versions 7 to"):
        read_record(run)


def test_a_damaged_run_gives_one_clear_line(run):
    for name, message in (("factorization.npz", "is not a"), ("run.json", "is damaged")):
        (run / name).write_text("{")
        with pytest.raises(ValueError, match=f"{message}.*$"):
            read_run(run)


COLUMNS = {"total": 3, "numbers": [0, 2], "names": None, "mean": None, "scale": None}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"versions": [["manifactor", "0.1"]], "version": 6}, "versions has "),
        ({"versions": [["manifactor", "0.1"]]}, "versions has "),
        ({"n_samples": -1}, "n_samples has "),
        ({"n_samples": 10**400}, "n_samples has "),
        ({"columns": {**COLUMNS, "total": 10**30, "numbers": None}}, "columns"),
        ({"columns": {**COLUMNS, "total": 2}}, "columns"),
        ({"columns": {**COLUMNS, "numbers": [-1, 1]}}, "columns"),
        ({"columns": {**COLUMNS, "names": ["a"]}}, "columns"),
        ({"columns": {**COLUMNS, "mean": [1.0, 2, 3]}}, "columns"),
    ],
)
def test_counts_and_objects_of_a_record_are_not_believed(run, changes, message):
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**record, **changes}))
    with pytest.raises(ValueError, match=f"run.json is damaged: {message}"):
        read_record(run)
    # One of many columns takes neither time nor memory.
    columns = {**COLUMNS, "total": 10**15, "numbers": None}
    (run / "run.json").write_text(json.dumps({**record, "columns": columns}))
    assert read_record(run)["columns"] == columns


# Records, arrays and plain values in one file.


def test_records_arrays_and_plain_values_come_back(tmp_path):
    value = (Choice(3, "so"), {"a": np.arange(4), "b": None}, [1.5, np.True_, np.int64(3), "text"])
    write_tree(tmp_path / "tree.npz", value)
    choice, arrays, plain = read_tree(tmp_path / "tree.npz")
    assert choice == Choice(3, "so")
    np.testing.assert_array_equal(arrays["a"], np.arange(4))
    assert arrays["b"] is None
    assert plain == (1.5, True, 3, "text")


@pytest.mark.slow
def test_a_diffusion_with_parts_comes_back_and_gives_the_same_factors(tmp_path, monkeypatch):
    X, _ = datasets.sample("torus", 900, random_state=0)
    monkeypatch.setattr("manifactor.operators.laplacian.PARTED_ABOVE", 800)
    monkeypatch.setattr("manifactor.operators.laplacian.SMALLEST_PART", 400)
    before = diffuse(X, rng=np.random.default_rng(0))
    write_tree(tmp_path / "diffusion.npz", before)
    after = read_tree(tmp_path / "diffusion.npz")
    one, two = (factored(each) for each in (before, after))
    np.testing.assert_array_equal(one.factors[0].embedding, two.factors[0].embedding)


def test_a_value_that_would_not_come_back_is_refused(tmp_path):
    with pytest.raises(TypeError, match="`value/0` cannot be archived; got set"):
        write_tree(tmp_path / "tree.npz", ({1, 2},))
    assert not list(tmp_path.iterdir())
