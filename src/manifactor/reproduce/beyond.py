"""Beyond the paper: repeated eigenvalues, spheres, and the robot arm of its introduction."""

import numpy as np

from manifactor import plots
from manifactor.reproduce.cases import BEYOND
from manifactor.reproduce.lab import Found, Job, Lab
from manifactor.reproduce.panels import latent
from manifactor.reproduce.section import Picture, Section, Settings, Table
from manifactor.reproduce.trials import HEADER, measured, table_row
from manifactor.scores import coordinate_correlation

N = 3000
METHODS = ("triplets", "default")
POSES = 6


def beyond(settings: Settings, lab: Lab) -> Section:
    """What the paper's introduction promises and its method cannot do."""
    n = settings.n if settings.quick else N
    found = dict(zip(BEYOND, lab.find([Job(name, "default", n, settings.seed) for name in BEYOND]), strict=True))
    records = measured(BEYOND, METHODS, n, settings, lab)
    arm, angles = _draw_arm(found["robot_arm"])
    rows = [[BEYOND[case].title, *table_row(method, runs)] for (case, method), runs in records.items()]
    places = (
        f"Places found by the default method from {n:,} samples, coloured by the true factor (an interval's "
        "against the truth itself; a sphere's from the side, coloured by its height). Below each: the R^2 with which "
        "places tell the true factor."
    )
    poses = (
        f"Left: {POSES} poses of an arm with two full-turn joints; what is seen are the positions of two markers, "
        "elbow and hand. Right: the angles of both joints, found from the markers alone, against the true ones, "
        "in degrees."
    )
    return Section(
        "Beyond the paper: repeated eigenvalues, spheres, a robot arm",
        [
            "Where eigenvalues repeat across factors (square, equal circles, equal spheres) every computed "
            "eigenfunction mixes the factors, and no grouping of single functions can undo it: the triplet method "
            "fails by its nature. The default works with gradients, which need no eigenvalues apart.",
            _about_angles(angles),
        ],
        [Picture("beyond-places", _draw_places(found), places), Picture("beyond-arm", arm, poses)],
        [
            Table(
                "Mean over the seeds. Triplets: told the number of factors, delta a tenth of each eigenvalue, "
                "gamma .7.",
                HEADER,
                rows,
            )
        ],
        {"robot_arm_angles": angles, **{f"{case}, {method}": runs for (case, method), runs in records.items()}},
    )


def _about_angles(angles: dict) -> str:
    if not angles:
        return "The arm's joints were not found in this run."
    words = [f"joint {i}: circular correlation {c:.4f}, median error {e:.1f} degrees" for i, (c, e) in angles.items()]
    return (
        f"The arm's angles, up to sign and zero, which no data can tell: {'; '.join(words)}. The factors are the "
        "directions of both links; the second joint's angle is the difference of the two. Assumption 1 of the "
        "paper does not hold: in the space of marker positions the two directions are orthogonal on average only, "
        'the cosine between them is .7 times that of the angle between the links. So the verdict is "partial", '
        "and angles come out a few degrees uneven."
    )


def _draw_places(found: dict[str, Found]):
    figure = plots.new_figure(7.2, 3.8)
    axes = figure.subplots(2, len(found))
    for column, (name, one) in enumerate(found.items()):
        for true in range(2):
            ax, number = axes[true, column], one.matching(true)
            if number is None:
                plots.nothing(ax, "not found")
                continue
            plots.place(ax, _turned(one.places[number], one.truth[true]), one.truth[true])
            ax.set_xlabel(f"$R^2$ = {one.score.r2[true, number]:.3f}")
        axes[0, column].set_title(BEYOND[name].title)
    return figure


def _turned(places: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """A sphere's places as seen from the side, its true height upwards; others as they are."""
    if truth.shape[1] < 3:
        return places
    return (places @ np.linalg.lstsq(places, truth, rcond=None)[0])[:, [0, 2]]


def _draw_arm(found: Found):
    """The arm and its angles; the correlation and median error of each joint's angle, none if it was not found."""
    figure = plots.new_figure(7.2, 2.5)
    axes = figure.subplots(1, 3)
    for pose, colour in zip(found.samples[:POSES], plots.CATEGORIES, strict=False):
        path = np.array([[0, 0], pose[:2], pose[2:]])
        axes[0].plot(*path.T, "-o", color=colour, linewidth=1.2, markersize=3)
    axes[0].set_aspect("equal")
    axes[0].set_title("poses")
    links = [i for i in map(found.matching, range(2)) if i is not None and found.factors[i].topology == "circle"]
    if len(links) < 2:
        for ax in axes[1:]:
            plots.nothing(ax, "not found")
        return figure, {}
    truth = np.radians([latent(true) for true in found.truth])
    seen = [aligned_angle(np.arctan2(*found.places[i].T[::-1]), true) for i, true in zip(links, truth, strict=True)]
    numbers = {}
    pairs = [(seen[0], truth[0]), (seen[1] - seen[0], truth[1] - truth[0])]
    for joint, (angle, true) in enumerate(pairs, start=1):
        error = np.angle(np.exp(1j * (angle - true)))
        ring = np.column_stack([np.cos(true), np.sin(true)])
        numbers[joint] = [coordinate_correlation(angle, ring), float(np.degrees(np.median(np.abs(error))))]
        ax = axes[joint]
        ax.scatter(np.degrees(true) % 360, np.degrees(angle) % 360, s=1, color=plots.CATEGORIES[0], rasterized=True)
        ax.set(
            xlabel="true", ylabel="found", title=f"joint {joint}, degrees", xticks=[0, 180, 360], yticks=[0, 180, 360]
        )
        ax.set_aspect("equal")
    return figure, numbers


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
