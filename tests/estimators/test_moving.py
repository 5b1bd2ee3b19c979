"""Fits of samples whose moves are known: a metric, times, trajectories, bursts."""

import numpy as np
import pytest

from manifactor import ManifoldFactorizer
from manifactor.judging.evidence import NoProductStructureWarning
from manifactor.models.moves.paths import NoDiffusionWarning
from manifactor.scores import score
from studies.dynamics import LINE, random_map

from ..moving import jacobian, latents, seen

pytestmark = pytest.mark.medium

STEPS = np.array([0.04, 0.06])


def factored(X, **known):
    return ManifoldFactorizer(random_state=0).fit(X, **known)


def truth_of(u):
    return [u[:, [0]], u[:, [1]]]


def solved(fit, u):
    return score([factor.embedding for factor in fit.factors_], truth_of(u)).solved


@pytest.fixture(scope="module")
def sheet():
    """Even places in a square, and samples that are a bent and sheared map of them."""
    u = np.random.default_rng(0).random((700, 2))
    return u, seen(u)


@pytest.fixture(scope="module")
def fit_of_sheet(sheet):
    u, X = sheet
    return factored(X, metric=jacobian(u) * STEPS)


@pytest.fixture(scope="module")
def path():
    u = latents(4000, np.random.default_rng(1))
    return u, seen(u)


@pytest.fixture(scope="module")
def fit_of_path(path):
    _, X = path
    return factored(X, times=np.arange(len(X)), fit_samples=500)


@pytest.fixture(scope="module")
def fit_of_two(path):
    """A fit of two parts of the path, and where all of their samples lie."""
    _, X = path
    fit = ManifoldFactorizer(random_state=0)
    return fit, fit.fit_transform([X[:1800], X[2200:]], trajectories=True, fit_samples=800)


def test_jacobians_tell_the_factors_of_a_bent_map_which_samples_alone_do_not(sheet, fit_of_sheet):
    u, X = sheet
    assert fit_of_sheet.verdict_ == "product"
    assert fit_of_sheet.evidence_.sense == "dynamics"
    assert np.isnan(fit_of_sheet.evidence_.probability)
    assert solved(fit_of_sheet, u)
    with pytest.warns(NoProductStructureWarning):
        assert not solved(ManifoldFactorizer(sense="geometry", random_state=0).fit(X), u)


def test_tests_of_plain_lengths_do_not_apply(fit_of_sheet, fit_of_path):
    names = {test.name for test in fit_of_sheet.evidence_.tests}
    assert names >= {"product", "completeness", "filling", "folds", "agreement"}
    in_time = {"moves", "drift", "speed", "places", "coverage", "resolution"}
    assert not names & {"skew", "crossing", "modulation in data", "leakage", *in_time}
    assert in_time <= {test.name for test in fit_of_path.evidence_.tests}


def test_covariances_give_the_same_factors_as_jacobians(sheet, fit_of_sheet):
    u, X = sheet
    J = jacobian(u) * STEPS
    fit = factored(X, metric=J @ J.transpose(0, 2, 1))
    for one, other in zip(fit.factors_, fit_of_sheet.factors_, strict=True):
        assert abs(np.corrcoef(one.coordinate, other.coordinate)[0, 1]) > 0.9999


def test_the_unit_of_the_metric_does_not_matter(sheet, fit_of_sheet):
    u, X = sheet
    fit = factored(X, metric=100 * jacobian(u) * STEPS)
    assert np.allclose(fit.coordinates(), fit_of_sheet.coordinates(), atol=1e-6)


def test_coordinates_of_intervals_are_accurate_up_to_their_ends(sheet, fit_of_sheet):
    u, _ = sheet
    for factor in fit_of_sheet.factors_:
        right = max(u.T, key=lambda each: abs(np.corrcoef(each, factor.coordinate)[0, 1]))
        found = factor.coordinate
        found = found if np.corrcoef(right, found)[0, 1] > 0 else 1 - found
        # Those read off a flat function are off by .1 there.
        assert np.abs(found - right)[(right < 0.05) | (right > 0.95)].mean() < 0.03


def test_the_metric_of_wide_samples_is_mapped_with_them(rng, sheet, fit_of_sheet):
    u, X = sheet
    turn = np.linalg.qr(rng.normal(size=(200, 3)))[0].T
    fit = factored(X @ turn, metric=turn.T @ (jacobian(u) * STEPS))
    assert fit.preparation_.components.shape == (200, 3)
    for one, other in zip(fit.factors_, fit_of_sheet.factors_, strict=True):
        assert abs(np.corrcoef(one.coordinate, other.coordinate)[0, 1]) > 0.999


def test_steps_tell_the_factors_of_a_trajectory(path, fit_of_path):
    u, X = path
    assert solved(fit_of_path, u[fit_of_path.rows_])
    assert len(fit_of_path.rows_) == 500
    assert fit_of_path.choices_["lag"].value == 1
    assert fit_of_path.choices_["samples"].value == 500
    assert fit_of_path.diffusion_.path is None
    everywhere = fit_of_path.transform(X)
    assert score([everywhere[:, [0]], everywhere[:, [1]]], truth_of(u)).solved


def test_a_metric_of_steps_tells_rates_and_a_markov_model(fit_of_path):
    assert fit_of_path.choices_["dynamics"].value == "metric"
    for rates, step in zip(fit_of_path.rates_, STEPS, strict=True):
        assert rates[0] == pytest.approx((np.pi * step) ** 2 / 2, rel=0.4)
    model = fit_of_path.markov_model(0, n_states=5)
    assert model.lag == fit_of_path.choices_["lag"].value
    assert np.diag(model.transition_matrix).min() > 0.5


def test_several_trajectories_are_joined_without_steps_between_them(path, fit_of_two):
    u, _ = path
    fit, found = fit_of_two
    assert found.shape == (3600, 2)
    assert solved(fit, np.concatenate([u[:1800], u[2200:]])[fit.rows_])


def test_labels_tell_trajectories_apart_in_any_order_of_rows(rng, path, fit_of_two):
    _, X = path
    fit, _ = fit_of_two
    both = np.concatenate([X[:1800], X[2200:]])
    run, times = np.repeat(["a", "b"], 1800), np.tile(np.arange(1800), 2)
    order = rng.permutation(3600)
    mixed = factored(both[order], times=times[order], trajectories=run[order], fit_samples=800)
    assert np.array_equal(np.sort(order[mixed.rows_]), fit.rows_)
    place = np.argsort(order[mixed.rows_])
    assert np.allclose(mixed.coordinates()[place], fit.coordinates(), atol=1e-6)


def test_bursts_tell_the_factors(rng, sheet):
    u, X = sheet
    v = u[:, None] + STEPS / 2 * rng.normal(size=(len(u), 4, 2))
    fit = factored(X, bursts=seen(v.reshape(-1, 2)).reshape(len(u), 4, 3))
    assert solved(fit, u)
    names = {test.name for test in fit.evidence_.tests}
    assert names >= {"moves", "speed", "resolution"}
    assert not names & {"coverage", "places"}


def test_a_short_trajectory_is_told_to_be_short_with_a_number(rng):
    X = seen(latents(1500, rng, steps=(0.008, 0.012)))
    with pytest.warns(NoProductStructureWarning, match="through its range too seldom"):
        fit = factored(X, times=np.arange(1500), fit_samples=300)
    assert "times as long would do" in fit.evidence_.reason
    (test,) = (test for test in fit.evidence_.tests if test.name == "coverage")
    assert not test.passed
    assert fit.evidence_.answer == "cannot tell"


X30 = np.random.default_rng(0).normal(size=(60, 3))
C30 = np.repeat(np.eye(3)[None], 60, axis=0)


def changed(array, place, value):
    out = np.array(array, dtype=float)
    out[place] = value
    return out


BAD = [
    ({"metric": C30[:59]}, r"`metric` must have shape \(60, 3, 3\).*got \(59, 3, 3\)"),
    ({"metric": np.ones((60, 3, 4))}, r"its Jacobian along d latents; got \(60, 3, 4\)"),
    ({"metric": changed(C30, (7, 0, 1), 0.5)}, "must be symmetric; that of row 7 is wrong"),
    ({"metric": changed(C30, (8, 1, 1), -1.0)}, "must not be negative; that of row 8 is wrong"),
    ({"metric": changed(C30, 9, 0.0)}, "`metric` must not be 0; that of row 9 is wrong"),
    ({"metric": changed(C30, (4, 1, 1), np.nan)}, "`metric` must be finite; .* in row 4"),
    ({"times": np.arange(59)}, r"one number for each of the 60 samples; got shape \(59,\)"),
    ({"times": changed(np.arange(60), 5, 4)}, "`times` must differ; rows 4 and 5 have the same, 4"),
    ({"times": changed(np.arange(60), 5, np.nan)}, "`times` must be finite"),
    ({"times": np.arange(60)}, "rows must be in the order of time"),
    ({"times": 2.0 ** np.arange(60)}, "50 steps or more, .*; got"),
    ({"bursts": X30}, r"`bursts` must have shape \(60, r, 3\)"),
    (
        {"bursts": changed(np.ones((60, 2, 3)), (3, 1, 1), np.inf)},
        "`bursts` must be finite; .* in row 3",
    ),
    ({"bursts": X30[:, None]}, "`bursts` must move the samples"),
    ({"bursts": np.ones((60, 1, 3)), "metric": C30}, "in one way; got `metric` and `bursts`"),
    ({"trajectories": True}, "must be a list of arrays"),
    ({"trajectories": [1] * 59}, r"one label for each of the 60 samples; got shape \(59,\)"),
    ({"trajectories": ["a"] * 59 + [None]}, "have a label for each sample; that of row 59"),
    ({"trajectories": np.arange(60) // 2}, "50 steps or more"),
    ({"times": np.zeros(60), "trajectories": np.arange(60) // 2}, "rows 0 and 1 have the same"),
]


@pytest.mark.parametrize(("known", "message"), BAD)
def test_moves_that_cannot_be_used_say_what_must_hold(known, message):
    with pytest.raises(ValueError, match=message):
        ManifoldFactorizer().fit(X30, **known)


def test_few_moves_are_refused():
    with pytest.raises(ValueError, match="50 moves or more in all; got 40"):
        ManifoldFactorizer().fit(X30[:20], bursts=np.ones((20, 2, 3)))


@pytest.mark.parametrize(
    ("parts", "message"),
    [([], "one trajectory or more"), ([X30, X30[:, :2]], r"shapes \(60, 3\) in X\[0\] and")],
)
def test_trajectories_must_have_the_same_columns(parts, message):
    with pytest.raises(ValueError, match=message):
        ManifoldFactorizer().fit(parts, trajectories=True)


@pytest.mark.parametrize(
    "parameters",
    [
        {"method": "sum"},
        {"sense": "geometry"},
        {"neighbors": "brute"},
        {"n_neighbors": "all"},
        {"transformation": "sqrt"},
    ],
)
def test_parameters_that_moves_leave_no_choice_of_are_refused(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"`{name}` must be .* with|`{name}` must be .* where"):
        ManifoldFactorizer(**parameters).fit(X30, metric=C30)


@pytest.mark.filterwarnings("ignore::manifactor.NoProductStructureWarning")
def test_smooth_motion_is_warned_of():
    t = np.linspace(0, 20, 1000)
    X = np.column_stack([np.sin(t), np.cos(1.3 * t), np.sin(0.7 * t)])
    with pytest.warns(NoDiffusionWarning, match="smooth motion"):
        ManifoldFactorizer(random_state=0).fit(X, times=t, fit_samples=200)


@pytest.fixture(scope="module")
def solid():
    """Three latents behind a map that bends every kernel, and a fit by its derivatives."""
    rng = np.random.default_rng(100)
    see, u, h = random_map((LINE,) * 3, ("warp", 0.3), rng), rng.random((1500, 3)), 1e-4
    sides = [(see(u + h * e) - see(u - h * e)) / (2 * h) for e in np.eye(3)]
    return u, see, factored(see(u), metric=np.stack(sides, axis=2))


@pytest.mark.nightly  # test_unfolding.py and test_capabilities.py look at flat places in less time
def test_three_latents_behind_a_strong_map_are_found_in_flat_places(solid):
    u, _, fit = solid
    assert fit.verdict_ == "product"
    assert fit.choices_["distances"].value == "flat"
    assert score([factor.embedding for factor in fit.factors_], list(u.T[:, :, None])).solved
