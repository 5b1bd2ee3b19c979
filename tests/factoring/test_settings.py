import pytest

from manifactor import ManifoldFactorizer, datasets
from manifactor.factoring.factorization import FactoringSettings, require_factoring

BAD = [
    ({"method": "magic"}, "`method` must be one of"),
    ({"sense": "touch"}, "`sense` must be one of"),
    ({"method": "triplets", "sense": "sum"}, "`sense` is for `method='gradients'`"),
    ({"n_factors": 0}, r"`n_factors` .* in \[1, 6\]; got 0"),
    ({"n_factors": 2.5}, "`n_factors` must be a whole number"),
    ({"n_factors": "many"}, "`n_factors` .* got 'many'"),
    ({"method": "triplets", "similarity_threshold": 1.5}, "`similarity_threshold` .* got 1.5"),
    ({"method": "triplets", "eigenvalue_tolerance": 0}, "`eigenvalue_tolerance` .* got 0"),
    ({"method": "triplets", "exclude": 3}, "`exclude` must be a sequence of indices"),
    ({"method": "triplets", "exclude": [0]}, "`exclude` .* got 0"),
    ({"exclude": [1, 2]}, r"`exclude` is for `method='triplets'`; got \[1, 2\]"),
    ({"similarity_threshold": 0.6}, "`similarity_threshold` is for `method='triplets'`; got 0.6"),
    (
        {"method": "deflation", "eigenvalue_tolerance": 0.1},
        "`eigenvalue_tolerance` is for `method='triplets'`; got 0.1 with 'deflation'",
    ),
]


@pytest.mark.parametrize(("settings", "message"), BAD)
def test_it_is_refused_before_anything_is_computed(settings, message):
    called = []
    fit = ManifoldFactorizer(callback=lambda stage, fraction: called.append(stage), **settings)
    X, _ = datasets.sample("torus", 100, random_state=0)
    with pytest.raises(ValueError, match=message):
        fit.fit(X)
    assert called == []


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"n_factors": 6},
        {"method": "sum", "n_factors": 3},
        {"method": "deflation"},
        {"method": "triplets", "exclude": [1], "similarity_threshold": 0},
        {"method": "triplets", "eigenvalue_tolerance": 2, "exclude": ()},
    ],
)
def test_what_makes_sense_is_not_refused(settings):
    require_factoring(FactoringSettings(**settings), n_functions=10)


def test_indices_are_checked_against_the_number_of_functions_where_it_is_known():
    excluding = FactoringSettings(method="triplets", exclude=[9])
    require_factoring(excluding)
    require_factoring(excluding, n_functions=10)
    with pytest.raises(ValueError, match=r"whole number in \[1, 8\]; got 9"):
        require_factoring(excluding, n_functions=9)
