"""Shapes like the data that people have, in groups by what is difficult about them."""

from collections.abc import Mapping

import numpy as np

from manifactor.datasets.densities import (
    Beta,
    Bumps,
    Exponential,
    Gap,
    Normal,
    Uneven,
    VonMises,
    Wells,
)
from manifactor.datasets.not_products import (
    PROFILES,
    Cloud,
    Conformal,
    CutCorner,
    Ellipsoid,
    Frustum,
    Hole,
    LatticeTorus,
    Revolution,
    SolidEllipsoid,
    Stadium,
    bend,
    catenoid,
    exponential,
    mercator,
    square,
    stereographic,
)
from manifactor.datasets.objects import Scene, Shifting, Turning
from manifactor.datasets.products import (
    Disk,
    Interval,
    ProjectivePlane,
    Rotations,
    Shape,
    Sphere,
    Star,
    circle,
    independent,
    product,
)

# Two objects beside each other, and nearer, so that their images overlap.
APART = ((-0.5, 0.0), (0.5, 0.0))
OVERLAPPING = ((-0.25, 0.0), (0.25, 0.0))
# The centres and the size of three objects.
THREE_CENTRES = ((-0.55, -0.5), (0.55, -0.5), (0.0, 0.5))
SMALL_SIZE = 0.5


def _gaussian(*deviations: float) -> Shape:
    return independent(*map(Normal, deviations))


def _torsions(barrier: float, tilt: float) -> Shape:
    wells = Wells(barrier, tilt)
    return independent(Uneven(circle(), wells), Uneven(circle(0.7), wells))


def _two_turning(variance_ratio: float, centres=APART, **changes) -> Shape:
    return Scene(tuple(Turning(centre, 0.7) for centre in centres), variance_ratio, **changes)


def _turning_and_shifting(variance_ratio: float, centres=APART) -> Shape:
    left, right = centres
    return Scene((Turning(left, 0.7), Shifting(right, 0.7)), variance_ratio)


def _three_objects(variance_ratio: float) -> Shape:
    left, right, top = THREE_CENTRES
    objects = (Turning(left, SMALL_SIZE), Shifting(right, SMALL_SIZE), Turning(top, SMALL_SIZE))
    return Scene(objects, variance_ratio)


def _half_circumference(length: float) -> Sphere:
    """Return a circle as long, from a point to the opposite one, as an interval."""
    return circle(length / np.pi)


FIELD: dict[str, Mapping[str, Shape]] = {
    # Standard deviations of the factors.
    "gaussian": {
        "gaussian_1_1.5": _gaussian(1, 1.5),
        "gaussian_1_2": _gaussian(1, 2),
        "gaussian_1_3": _gaussian(1, 3),
        "gaussian_1_5": _gaussian(1, 5),
        "gaussian_1_1.5_2.25": _gaussian(1, 1.5, 2.25),
        "gaussian_1_2_4": _gaussian(1, 2, 4),
        "gaussian_1_3_5": _gaussian(1, 3, 5),
    },
    "soft density": {
        "beta": independent(Uneven(Interval(1.6), Beta(2, 5)), Uneven(Interval(), Beta(2, 2))),
        "equal_beta": independent(
            Uneven(Interval(2.0), Beta(2, 2)), Uneven(Interval(), Beta(2, 2))
        ),
        **{
            f"von_mises_torus_{k}": independent(
                Uneven(circle(1.6), VonMises(k)), Uneven(circle(), VonMises(k))
            )
            for k in (1, 2)
        },
        **{
            f"von_mises_cylinder_{k}": independent(Interval(3.0), Uneven(circle(), VonMises(k)))
            for k in (1, 2)
        },
        "bimodal": independent(Uneven(Interval(1.6), Bumps(0.16)), Interval()),
        "deep_bimodal": independent(Uneven(Interval(1.6), Bumps(0.12)), Interval()),
        "exponential": independent(Exponential(1.0), Interval(3.0)),
    },
    # Barriers in units of kT.
    "wells": {
        **{f"wells_{barrier}": _torsions(barrier, 0.0) for barrier in (1, 2, 3, 4)},
        **{f"uneven_wells_{barrier}": _torsions(barrier, 0.5) for barrier in (1, 2, 3, 4)},
    },
    # Factors of which one is much shorter.
    "unequal lengths": {
        **{f"strip{k}": product(Interval(k), Interval()) for k in (20, 30)},
        **{f"long_cylinder{k}": product(Interval(k), _half_circumference(1)) for k in (10, 20)},
        **{f"flat_cylinder{k}": product(_half_circumference(k), Interval()) for k in (10, 20)},
        **{
            f"thin_torus{k}": product(_half_circumference(k), _half_circumference(1))
            for k in (10, 20)
        },
        "thin_disk": independent(Disk(7.5), Interval()),
        "large_sphere_circle": product(Sphere(10.0), circle()),
    },
    # Ratios of the variances of the objects' images.
    "images of objects": {
        **{f"two_turning_{ratio}": _two_turning(ratio) for ratio in (1, 5, 10, 30)},
        **{f"turning_and_shifting_{ratio}": _turning_and_shifting(ratio) for ratio in (1, 10, 30)},
        "two_shifting": Scene(tuple(Shifting(centre, 0.7) for centre in APART), 5),
        "overlapping": _two_turning(5, OVERLAPPING),
        "overlapping_shift": _turning_and_shifting(3, OVERLAPPING),
        "occluded": _two_turning(3, OVERLAPPING, occluding=True),
        "noisy_turning": _two_turning(5, noise=0.5),
        "three_objects_5": _three_objects(5),
        "three_objects_30": _three_objects(30),
    },
    # Lengths of the gap in per cent of the factor's length.
    "gaps": {
        f"{name}_gap{percent}": independent(Uneven(part, Gap(percent / 100, 0.45)), other)
        for percent in (5, 10, 15)
        for name, part, other in (
            ("rectangle", Interval(1.6), Interval()),
            ("cylinder", Interval(4.0), circle()),
            ("torus", circle(1.6), circle()),
        )
    },
    "conformal": {
        "exponential_map": Conformal(exponential, (0.0, 1.0), (0.0, 1.6)),
        "long_exponential_map": Conformal(exponential, (0.0, 1.5), (0.0, 2.5)),
        "square_map": Conformal(square, (0.6, 1.6), (0.0, 1.5)),
        "bend_map": Conformal(bend, (-1.0, 1.0), (-0.6, 0.6)),
        "stereographic_map": Conformal(stereographic, (-1.2, 1.2), (-0.8, 0.8)),
        "mercator_map": Conformal(mercator, (-1.3, 1.3), closed=True),
        "catenoid_map": Conformal(catenoid, (-1.2, 1.2), closed=True),
    },
    # Ratios of the largest to the smallest radius.
    "revolution": {
        f"{profile}_{ratio:g}": Revolution(profile, ratio, 3 * ratio)
        for profile in PROFILES
        for ratio in (1.5, 2.0, 3.0)
    },
    "unusual factors": {
        "star_circle": independent(Star(), circle(0.8)),
        "projective_plane_interval": independent(ProjectivePlane(), Interval(2.2)),
        "rotations_interval": independent(Rotations(), Interval(4.0)),
    },
    "one factor": {
        "cloud2": Cloud(2, 0.0),
        "cloud3": Cloud(3, 0.0),
        "correlated_cloud2": Cloud(2, 0.3),
        "correlated_cloud3": Cloud(3, 0.3),
        "ellipsoid": Ellipsoid((1.0, 1.5, 2.0)),
        "long_ellipsoid": Ellipsoid((1.0, 2.0, 3.0)),
        "solid_ellipsoid": SolidEllipsoid((1.0, 1.5, 2.0)),
        "frustum": Frustum(0.5, 2.0),
        "long_frustum": Frustum(0.4, 10.0),
    },
    "near products": {
        "cut_corner": CutCorner((1.6, 1.0), 0.5),
        "small_cut_corner": CutCorner((1.6, 1.0), 0.3),
        "hole": Hole((1.6, 1.0), 0.2),
        "large_hole": Hole((1.6, 1.0), 0.3),
        "stadium": Stadium((2.5, 1.0)),
        "lattice_torus": LatticeTorus(80.0, 1.0),
        "long_lattice_torus": LatticeTorus(80.0, 1.6),
    },
}
