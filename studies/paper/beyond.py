"""Beyond the paper: repeated eigenvalues, spheres, and a robot arm."""

from dataclasses import dataclass

import numpy as np

from manifactor.scores import coordinate_correlation
from manifactor.views import plots
from studies.paper.cases import BEYOND
from studies.paper.finding import Found, Job
from studies.paper.lab import Lab
from studies.paper.panels import latent
from studies.paper.rates import by_label, in_words, measured, table_of
from studies.paper.section import Picture, Section, Settings

# The published bandwidths are for the paper's own data: on these, its algorithm gets this package's
# kernel.
BEYOND_METHODS = ("triplets", "default")

# Found and true angle in radians, (n,) each.
Angles = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class BeyondSettings:
    """Settings of `beyond`."""

    # As many as in the accuracy benchmark.
    n_samples: int = 3000
    # Poses of the arm that are drawn.
    n_poses: int = 6


def beyond(settings: Settings, lab: Lab, *, recipe: BeyondSettings = BeyondSettings()) -> Section:
    """Return data that the paper's introduction names, or that its method cannot do."""
    # These data need no 10,000 samples: the paper has no figure of them to match.
    n = settings.n if settings.quick else recipe.n_samples
    jobs = [Job(name, "default", n, settings.seed) for name in BEYOND]
    found = dict(zip(BEYOND, lab.find(jobs), strict=True))
    records = measured(BEYOND, BEYOND_METHODS, n, settings=settings, lab=lab)
    arm = found["robot_arm"]
    joints = joint_angles(arm)
    errors = {joint: angle_error(*pair) for joint, pair in joints.items()}
    # A sample is the position of both markers: four columns.
    poses = arm.samples[: recipe.n_poses]
    results = " ".join(in_words(method, BEYOND, records) for method in BEYOND_METHODS)
    return Section(
        "Beyond the paper: repeated eigenvalues, spheres, a robot arm",
        [WHY, results, _about_angles(errors)],
        [
            Picture("beyond-places", _draw_places(found), PLACES.format(n=n)),
            Picture("beyond-arm", _draw_arm(poses, joints), _about_arm(recipe)),
        ],
        [table_of(BEYOND, records, _about_table(n, settings))],
        {"robot_arm_angles": errors, **by_label(records)},
    )


WHY = (
    "Where eigenvalues repeat across factors (square, equal circles, equal spheres) "
    "the lowest eigenfunctions are any rotation of the factors' own, and no grouping "
    "of single functions can undo it; where the triplet method is right, the draw "
    "happened to be turned little. The default works with gradients, which need no "
    "eigenvalues apart."
)
PLACES = (
    "Places found by the default method from {n:,} samples, coloured by the true "
    "factor (an interval's against the truth itself; a sphere's from the side, "
    "coloured by its height). Below each: the R^2 with which places tell the true "
    "factor."
)


def _about_table(n: int, settings: Settings) -> str:
    return (
        f"{n:,} samples, means over seeds {settings.seeds[0]} to "
        f"{settings.seeds[-1]}; verdicts are product / separable / partial / none. Triplets: the "
        "paper's algorithm on this package's kernel, told the number of factors, delta "
        "a tenth of each eigenvalue, gamma .7; the paper has no settings for these "
        "data."
    )


def _about_arm(recipe: BeyondSettings) -> str:
    return (
        f"Left: {recipe.n_poses} poses of an arm with two full-turn joints; what is "
        "seen are the positions of two markers, elbow and hand. Right: the angles of "
        "both joints, found from the markers alone, against the true ones, in degrees."
    )


def _about_angles(errors: dict[int, list[float]]) -> str:
    if not errors:
        return "The arm's joints were not found in this run."
    words = [
        f"joint {i}: circular correlation {c:.4f}, median error {e:.1f} degrees"
        for i, (c, e) in errors.items()
    ]
    return (
        "The arm's angles, up to sign and zero, which no data can tell: "
        f"{'; '.join(words)}. The factors are the directions of both links; the second "
        "joint's angle is the difference of the two. Assumption 1 of the paper does "
        "not hold: in the space of marker positions the two directions are orthogonal "
        "on average only, the cosine between them is .7 times that of the angle "
        'between the links. So "product" is not to be expected, and angles come out a '
        "few degrees uneven."
    )


def joint_angles(found: Found) -> dict[int, Angles]:
    """Return found and true angles of both joints.

    The dictionary is empty where the links were not found as circles.
    """
    # The order of the true links, not that of the factors found.
    links = [found.matching(true) for true in range(2)]
    rings = [i for i in links if i is not None and _is_circle(found, i)]
    if len(rings) < 2:
        return {}
    truth = [np.radians(latent(true)) for true in found.truth]
    seen = []
    for i, true in zip(rings, truth, strict=True):
        cosine, sine = found.places[i].T
        seen.append(aligned_angle(np.arctan2(sine, cosine), true))
    # Directions of links are seen; the second joint turns its link against the first.
    return {1: (seen[0], truth[0]), 2: (seen[1] - seen[0], truth[1] - truth[0])}


def _is_circle(found: Found, number: int) -> bool:
    return found.factors[number].topology == "circle"


def aligned_angle(angle: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Return an angle with the sign and the zero of the true one.

    A factor has neither.

    >>> true = np.linspace(0, 6, 50)
    >>> np.allclose(np.exp(1j * aligned_angle(1.0 - true, true)), np.exp(1j * true))
    True
    """
    # The mean over the circle is long for the right sign, where all differences agree.
    means = {sign: np.mean(np.exp(1j * (true - sign * angle))) for sign in (1, -1)}
    sign = max(means, key=lambda s: abs(means[s]))
    return sign * angle + np.angle(means[sign])


def angle_error(angle: np.ndarray, true: np.ndarray) -> list[float]:
    """Return the circular correlation and the median error in degrees.

    >>> true = np.linspace(0, 6, 50)
    >>> [round(value, 3) for value in angle_error(true + np.radians(3), true)]
    [1.0, 3.0]
    """
    # Through the exponential, as a difference of 359 degrees is one of 1.
    error = np.angle(np.exp(1j * (angle - true)))
    ring = np.column_stack([np.cos(true), np.sin(true)])
    median = float(np.degrees(np.median(np.abs(error))))
    return [coordinate_correlation(angle, ring), median]


def _draw_places(found: dict[str, Found]):
    figure = plots.new_figure(7.2, 3.8)
    axes = figure.subplots(2, len(found))
    for column, (name, one) in zip(axes.T, found.items(), strict=True):
        for true, ax in enumerate(column):
            _draw_place(ax, one, true)
        column[0].set_title(BEYOND[name].title)
    return figure


def _draw_place(ax, found: Found, true: int) -> None:
    number = found.matching(true)
    if number is None:
        plots.nothing(ax, "not found")
        return
    places = _turned(found.places[number], found.truth[true])
    plots.place(ax, places, found.truth[true])
    ax.set_xlabel(f"$R^2$ = {found.score.r2[true, number]:.3f}")


def _turned(places: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return a sphere's places seen from the side, and others as they are."""
    if truth.shape[1] < 3:
        return places
    # The least-squares map to the truth turns the true height upwards.
    upright = places @ np.linalg.lstsq(places, truth, rcond=None)[0]
    return upright[:, [0, 2]]


def _draw_arm(poses: np.ndarray, joints: dict[int, Angles]):
    figure = plots.new_figure(7.2, 2.5)
    left, *right = figure.subplots(1, 3)
    # There are fewer colours than poses may be asked for.
    for pose, colour in zip(poses, plots.CATEGORIES, strict=False):
        path = np.array([[0, 0], pose[:2], pose[2:]])
        left.plot(*path.T, "-o", color=colour, linewidth=1.2, markersize=3)
    left.set(aspect="equal", title="poses")
    for joint, ax in enumerate(right, start=1):
        _draw_joint(ax, joint, joints.get(joint))
    return figure


def _draw_joint(ax, joint: int, angles: Angles | None) -> None:
    if angles is None:
        plots.nothing(ax, "not found")
        return
    angle, true = (np.degrees(values) % 360 for values in angles)
    ax.scatter(true, angle, s=1, color=plots.CATEGORIES[0], rasterized=True)
    ax.set(xlabel="true", ylabel="found", title=f"joint {joint}, degrees")
    ax.set(xticks=[0, 180, 360], yticks=[0, 180, 360], aspect="equal")
