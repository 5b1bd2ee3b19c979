"""Beyond the paper: repeated eigenvalues, spheres, and the robot arm of its introduction."""

import numpy as np

from manifactor.scores import coordinate_correlation
from manifactor.studies.paper.cases import BEYOND
from manifactor.studies.paper.lab import Found, Job, Lab
from manifactor.studies.paper.panels import latent
from manifactor.studies.paper.rates import in_words, measured, table_of
from manifactor.studies.paper.section import Picture, Section, Settings
from manifactor.views import plots

N = 3000
METHODS = ("triplets", "default")
POSES = 6


def beyond(settings: Settings, lab: Lab) -> Section:
    """Data that the paper's introduction names, or that its method cannot do by its nature."""
    n = settings.n if settings.quick else N
    found = dict(
        zip(
            BEYOND,
            lab.find([Job(name, "default", n, settings.seed) for name in BEYOND]),
            strict=True,
        )
    )
    records = measured(BEYOND, METHODS, n, settings=settings, lab=lab)
    joints = joint_angles(found["robot_arm"])
    errors = {joint: angle_error(*pair) for joint, pair in joints.items()}
    results = " ".join(in_words(method, BEYOND, records) for method in METHODS)
    return Section(
        "Beyond the paper: repeated eigenvalues, spheres, a robot arm",
        [WHY, results, _about_angles(errors)],
        [
            Picture("beyond-places", _draw_places(found), PLACES.format(n=n)),
            Picture(
                "beyond-arm", _draw_arm(found["robot_arm"].samples[:POSES], joints), ARM
            ),
        ],
        [
            table_of(
                BEYOND,
                records,
                TABLE.format(n=n, first=settings.seeds[0], last=settings.seeds[-1]),
            )
        ],
        {
            "robot_arm_angles": errors,
            **{f"{case}, {method}": runs for (case, method), runs in records.items()},
        },
    )


WHY = (
    "Where eigenvalues repeat across factors (square, equal circles, equal spheres) "
    "the lowest eigenfunctions are any rotation of the factors' own, and no grouping "
    "of single functions can undo it; where the triplet method is right, the draw "
    "happened to be turned little. The default works with gradients, which need no "
    "eigenvalues apart."
)
TABLE = (
    "{n:,} samples, means over seeds {first} to {last}; verdicts are product / "
    "partial / none. Triplets: the paper's algorithm on this package's kernel, told "
    "the number of factors, delta a tenth of each eigenvalue, gamma .7; the paper has "
    "no settings for these data."
)
PLACES = (
    "Places found by the default method from {n:,} samples, coloured by the true "
    "factor (an interval's against the truth itself; a sphere's from the side, "
    "coloured by its height). Below each: the R^2 with which places tell the true "
    "factor."
)
ARM = (
    f"Left: {POSES} poses of an arm with two full-turn joints; what is seen are the "
    "positions of two markers, elbow and hand. Right: the angles of both joints, "
    "found from the markers alone, against the true ones, in degrees."
)


def _about_angles(errors: dict[int, list[float]]) -> str:
    if not errors:
        return "The arm's joints were not found in this run."
    words = [
        f"joint {i}: circular correlation {c:.4f}, median error {e:.1f} degrees"
        for i, (c, e) in errors.items()
    ]
    return (
        f"The arm's angles, up to sign and zero, which no data can tell: {'; '.join(words)}. The factors are the "
        "directions of both links; the second joint's angle is the difference of the two. Assumption 1 of the "
        "paper does not hold: in the space of marker positions the two directions are orthogonal on average only, "
        'the cosine between them is .7 times that of the angle between the links. So "product" is not to be '
        "expected, and angles come out a few degrees uneven."
    )


def joint_angles(found: Found) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Found and true angles of both joints in radians, (n,) each; none where the links were not found as circles."""
    links = [
        i
        for i in map(found.matching, range(2))
        if i is not None and found.factors[i].topology == "circle"
    ]
    if len(links) < 2:
        return {}
    truth = [np.radians(latent(true)) for true in found.truth]
    seen = [
        aligned_angle(np.arctan2(*found.places[i].T[::-1]), true)
        for i, true in zip(links, truth, strict=True)
    ]
    return {1: (seen[0], truth[0]), 2: (seen[1] - seen[0], truth[1] - truth[0])}


def aligned_angle(angle: np.ndarray, true: np.ndarray) -> np.ndarray:
    """An angle with the sign and the zero of the true one: a factor has neither.

    Examples
    --------
    >>> true = np.linspace(0, 6, 50)
    >>> np.allclose(np.exp(1j * aligned_angle(1.0 - true, true)), np.exp(1j * true))
    True
    """
    means = {sign: np.mean(np.exp(1j * (true - sign * angle))) for sign in (1, -1)}
    sign = max(means, key=lambda s: abs(means[s]))
    return sign * angle + np.angle(means[sign])


def angle_error(angle: np.ndarray, true: np.ndarray) -> list[float]:
    """Circular correlation, and the median error in degrees.

    Examples
    --------
    >>> true = np.linspace(0, 6, 50)
    >>> [round(value, 3) for value in angle_error(true + np.radians(3), true)]
    [1.0, 3.0]
    """
    error = np.angle(np.exp(1j * (angle - true)))
    ring = np.column_stack([np.cos(true), np.sin(true)])
    return [
        coordinate_correlation(angle, ring),
        float(np.degrees(np.median(np.abs(error)))),
    ]


def _draw_places(found: dict[str, Found]):
    figure = plots.new_figure(7.2, 3.8)
    axes = figure.subplots(2, len(found))
    for column, (name, one) in enumerate(found.items()):
        for true in range(2):
            ax, number = axes[true, column], one.matching(true)
            if number is None:
                plots.nothing(ax, "not found")
                continue
            plots.place(
                ax, _turned(one.places[number], one.truth[true]), one.truth[true]
            )
            ax.set_xlabel(f"$R^2$ = {one.score.r2[true, number]:.3f}")
        axes[0, column].set_title(BEYOND[name].title)
    return figure


def _turned(places: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """A sphere's places as seen from the side, its true height upwards; others as they are."""
    if truth.shape[1] < 3:
        return places
    return (places @ np.linalg.lstsq(places, truth, rcond=None)[0])[:, [0, 2]]


def _draw_arm(poses: np.ndarray, joints: dict[int, tuple[np.ndarray, np.ndarray]]):
    figure = plots.new_figure(7.2, 2.5)
    axes = figure.subplots(1, 3)
    for pose, colour in zip(poses, plots.CATEGORIES, strict=False):
        path = np.array([[0, 0], pose[:2], pose[2:]])
        axes[0].plot(*path.T, "-o", color=colour, linewidth=1.2, markersize=3)
    axes[0].set(aspect="equal", title="poses")
    for joint, ax in enumerate(axes[1:], start=1):
        if joint not in joints:
            plots.nothing(ax, "not found")
            continue
        angle, true = (np.degrees(values) % 360 for values in joints[joint])
        ax.scatter(true, angle, s=1, color=plots.CATEGORIES[0], rasterized=True)
        ax.set(
            xlabel="true",
            ylabel="found",
            title=f"joint {joint}, degrees",
            aspect="equal",
        )
        ax.set(xticks=[0, 180, 360], yticks=[0, 180, 360])
    return figure
