"""The distribution of random problems."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Range = tuple[float, float]


@dataclass(frozen=True)
class ProblemSettings:
    """Settings of `random_problem`: the distribution of the problems."""

    # Log-uniform, so that small and large problems are equally frequent.
    n_samples: tuple[int, int] = (800, 6000)
    irreducible_share: float = 0.25
    # Names of `SHAPES`. Correlated clouds are not among them: their principal axes are independent,
    # so that either answer is right.
    irreducible: tuple[str, ...] = (
        *("sphere", "sphere3", "disk", "triangle", "parallelogram"),
        *("cloud2", "cloud3", "ellipsoid", "long_ellipsoid", "solid_ellipsoid"),
        *("frustum", "long_frustum", "moebius", "klein_bottle"),
    )
    # Probabilities of the kinds of the others.
    kinds: Mapping[str, float] = field(
        default_factory=lambda: {
            "even": 0.25,
            "gaussian": 0.1,
            "soft": 0.1,
            "wells": 0.1,
            "gap": 0.1,
            "weak": 0.15,
            "warp": 0.1,
            "near": 0.1,
        }
    )
    # Probabilities of one, two and three factors.
    factor_counts: tuple[float, ...] = (0.1, 0.55, 0.35)
    # Most dimensions of the whole product with one, two and three factors.
    most_dimensions: tuple[int, ...] = (3, 4, 4)
    # Probabilities of an interval, a circle and a sphere.
    factor_kinds: tuple[float, float, float] = (0.45, 0.35, 0.2)
    # The largest ratio of two factors' lengths, unless one of them is weak.
    length_ratio: float = 4
    # Of one Gaussian's deviation to the next smaller one's: Gaussians of equal deviation are
    # isotropic, and no direction is a factor.
    gaussian_ratio: Range = (1.5, 3.0)
    concentration: Range = (0.5, 2.0)
    # Beyond 4 kT a circle of 3000 samples has almost none between its wells.
    barrier: Range = (1.0, 4.0)
    largest_tilt: float = 0.5
    gap: Range = (0.05, 0.15)
    # The largest length over the smallest, or a bright object's variance over a dim one's, where
    # one factor is weak.
    weak_ratio: Range = (10.0, 30.0)
    brightness_ratio: Range = (1.0, 30.0)
    # Largest over smallest radius of a surface of revolution, and length over radius.
    radius_ratio: Range = (1.5, 3.0)
    axis_ratio: Range = (3.0, 5.0)
    # What a near-product lacks, relative to its short side: smaller corners and holes hold too few
    # of 800 samples to be missed.
    cut: Range = (0.4, 0.7)
    hole: Range = (0.2, 0.35)
    # How far going once around the second circle of a lattice torus moves along the first, of its
    # length: beyond a half another pair of circles is the shorter one.
    lattice_offset: Range = (0.17, 0.4)
    side_ratio: Range = (1.3, 2.5)
    # The smallest factor's extent over the largest standard deviation of the noise.
    extent_over_noise: float = 40
    largest_ambient_dimension: int = 20
    # The unit is 10^-6 to 10^6 times that of the shape: no absolute length may matter.
    largest_exponent: float = 6


# Uniform products and irreducible shapes alone: the easy problems.
EVEN_PROBLEMS = ProblemSettings(
    irreducible=("sphere", "sphere3", "disk", "triangle", "parallelogram"), kinds={"even": 1.0}
)
