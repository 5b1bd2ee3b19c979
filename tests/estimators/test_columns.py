import warnings

import numpy as np
import pandas
import pytest

from manifactor import ColumnWarning, ManifoldFactorizer, datasets
from manifactor.samples.columns import in_words, numbering_columns, remedy, suspicious_columns


def numbering(X):
    return np.flatnonzero(numbering_columns(X)).tolist()


@pytest.mark.parametrize(
    ("spread", "apart"),
    [
        ([1, 30], ()),
        ([1, 1000], (0, 1)),
        ([1, 1, 1000], (2,)),
        ([1, 1, 0.001, 1], (2,)),
        ([1, 5, 20, 90], ()),
        ([3, 1, 30, 10, 150], (1, 4)),  # each is near the middle
        ([3, 1, 30, 10, 80], ()),
        ([1, 1, 1000, 1000], (0, 1, 2, 3)),
    ],
)
def test_a_column_whose_scale_differs_a_hundredfold_is_named(rng, spread, apart):
    X = rng.uniform(size=(500, len(spread))) * spread
    assert suspicious_columns(X).get("scale", ()) == apart


def test_columns_of_every_kind_are_named(rng):
    X, n = rng.uniform(size=(500, 2)), np.arange(500)
    many = rng.uniform(size=(300, 200))
    many[:, 7] *= 1000
    time = np.cumsum(rng.uniform(0.1, 1, 500))
    labels = rng.integers(0, 4, size=(500, 1))
    components = rng.normal(size=(500, 8)) * 10.0 ** -np.arange(8)
    row, column = np.mgrid[:20, :20]
    place = rng.uniform(6, 14, size=(2, 300, 1, 1))
    soft = np.exp(-((row - place[0]) ** 2 + (column - place[1]) ** 2) / 8).reshape(300, -1)
    for table, expected in [
        (many, {"scale": (7,)}),
        # An index in any order, and a time
        (np.c_[X, n, rng.permutation(500), -time], {"index": (2, 3, 4)}),
        # A label beside continuous columns only
        (np.c_[X, labels], {"label": (2,)}),
        (np.c_[labels, rng.integers(0, 300, size=(500, 2))], {}),
        # A constant column beside others only
        (np.c_[X, np.ones(500)], {}),
        (np.c_[X, np.ones(500), n], {"index": (3,), "constant": (2,)}),
        # Few rows are in order by chance.
        (np.c_[n, X][:10], {}),
        # Principal components may fall off, and images are soft or whole numbers.
        (components, {}),
        (components[:, ::-1], {"scale": (0, 1, 2, 5, 6, 7)}),
        (soft, {}),
        (np.floor(255 * soft), {}),
    ]:
        assert suspicious_columns(table) == expected


@pytest.mark.medium
def test_no_column_of_the_shapes_is_suspicious():
    for shape in datasets.SHAPES:
        assert suspicious_columns(datasets.sample(shape, 100, random_state=0)[0]) == {}, shape


@pytest.mark.parametrize("unit", [1, 3, 0.01])
def test_a_column_that_numbers_the_rows_is_known_by_its_values(rng, unit):
    n = 500
    X = rng.uniform(size=(n, 2))
    drawn = np.sort(rng.choice(10 * n, n, replace=False))
    rng.shuffle(drawn)
    table = np.c_[X, unit * np.arange(n), 7 - unit * rng.permutation(n), drawn]
    assert numbering(table) == [2, 3, 4]
    assert numbering(table[:, :2]) == []
    # A sorted column is measured as it may be; so are stratified samples.
    stratified = (rng.permutation(n) + rng.uniform(size=n)) / n
    measured = np.c_[np.sort(X[:, 0]), stratified, rng.integers(0, 10 * n, n)]
    assert numbering(measured) == []
    # A design of experiments has no index.
    assert numbering(np.c_[rng.permutation(n), rng.permutation(n)]) == []
    # Columns that vary late in the table are worth a fit.
    late = np.repeat([[0.0, 0.0], [1.0, 3.0], [2.0, 1.0], [5.0, 2.0]], 300, axis=0)
    late[300:] += rng.normal(scale=0.1, size=(900, 2))
    assert numbering(np.c_[rng.permutation(1200), late]) == [0]


@pytest.mark.parametrize("constant", [0, 1])
def test_it_is_never_advised_to_leave_out_all_columns_that_vary(constant):
    line = np.linspace(0, 1, 500)[:, None] * [1, 2, 3]
    X = np.c_[line, np.full((500, constant), 5.0)]
    assert numbering(X) == []
    assert suspicious_columns(X) == {}
    # Nor where they only order the rows.
    assert suspicious_columns(X**2) == {}


@pytest.mark.medium
def test_a_fit_that_finds_no_product_warns_of_columns_and_the_evidence_says_so(rng):
    X = np.c_[rng.uniform(size=(400, 2)), np.arange(400)]
    table = pandas.DataFrame(X, columns=["x", "y", "id"])
    with warnings.catch_warnings(record=True, action="always") as issued:
        fit = ManifoldFactorizer(random_state=0).fit(table)
    (warning,) = [w for w in issued if issubclass(w.category, ColumnWarning)]
    assert str(warning.message).startswith("Column 'id' orders or numbers the rows")
    assert warning.filename == __file__
    assert fit.verdict_ != "product"
    assert "Column 'id' orders or numbers the rows" in str(fit.evidence_)
    # Nothing else is advised: every test rests on that column.
    assert fit.evidence_.advice.startswith("Leave out column 'id', unless it is measured")
    assert fit.evidence_.advice.endswith("Then fit again.")


@pytest.mark.medium
def test_an_index_is_named_also_where_it_is_a_factor_of_a_product(rng):
    X = np.c_[rng.uniform(size=800), rng.permutation(800) / 500]
    with pytest.warns(ColumnWarning, match="Column 1 orders or numbers the rows"):
        fit = ManifoldFactorizer(random_state=0).fit(X)
    assert fit.verdict_ == "product"
    assert fit.evidence_.advice.startswith("Leave out column 1")


@pytest.mark.slow
def test_a_product_is_found_without_a_warning_of_columns_and_its_data_are_known(rectangle):
    X = rectangle[0][:800]
    X = np.round(X[np.argsort(X[:, 0])], 12)
    assert suspicious_columns(X) == {"index": (0,)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = ManifoldFactorizer(random_state=0).fit(X)
    known = fit.evidence_.known
    assert (fit.verdict_, fit.evidence_.advice) == ("product", "")
    assert (known.n_samples, known.n_columns, known.circles) == (800, 2, False)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::manifactor.SampleWarning")
@pytest.mark.filterwarnings("ignore::manifactor.NoProductStructureWarning")
def test_known_noise_is_a_share_of_the_samples_after_preparation(rng):
    angle, radius = rng.uniform(0, 2 * np.pi, 300), np.sqrt(rng.uniform(size=300))
    X = 0.1 * rng.normal(size=(300, 40))
    X[:, :2] += radius[:, None] * np.c_[np.cos(angle), np.sin(angle)]
    fit = ManifoldFactorizer(sense="geometry", random_state=0).fit(X, noise=np.full(40, 0.1))
    n_kept = fit.preparation_.components.shape[1]
    # A disk of radius 1 has the variance 1/2.
    expected = n_kept * 0.01 / (0.5 + n_kept * 0.01)
    assert fit.evidence_.known.noise == pytest.approx(expected, rel=0.1)


def test_the_words_name_columns_and_what_to_do():
    found = {"scale": (1,), "label": (0, 2, 3, 4, 5, 6)}
    assert "columns 0, 2, 3, 4 and 2 more hold a few whole numbers" in in_words(found)
    advice = remedy(found)
    assert "`np.delete(X, [0, 2, 3, 4, ...], axis=1)`" in advice
    assert "`--drop 0,2,3,4,...`" in advice
    assert "Bring the other columns to one scale: `StandardScaler()" in advice
    named = {"index": (0,), "constant": (1,)}
    assert in_words(named, ["row id", "b"]).startswith("Column 'row id' orders or numbers")
    advice = remedy(named, ["row id", "b"])
    assert "`X.drop(columns=['row id'])`" in advice
    assert "`--drop 'row id'`" in advice
    assert remedy({"constant": (1,)}) == ""
    assert remedy({"scale": (0, 1)}).startswith("Bring all columns to one scale: `")
