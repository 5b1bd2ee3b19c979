"""Does the paper's algorithm separate the sides of the paper's rectangle?

    python benchmarks/rectangle.py [--seeds 5] [--shape rectangle_z]

For each seed: the R^2 with which the true side explains the two leading functions of
each factor.
"""

import argparse
import warnings

import numpy as np
from sklearn.neighbors import KNeighborsRegressor

from manifactor import ManifoldFactorizer, NoProductStructureWarning, datasets

from record import record


def explained(side, function):
    """Return the held-out R^2 of a function regressed on a side by its neighbours."""
    model = KNeighborsRegressor(20).fit(side[::2], function[::2])
    return round(float(model.score(side[1::2], function[1::2])), 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=10000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--shape", default="rectangle")
    parser.add_argument("--density-correction", type=float, default=0.0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", NoProductStructureWarning)
    good = 0
    for seed in range(arguments.seeds):
        X, truth = datasets.sample(arguments.shape, arguments.samples, random_state=seed)
        fit = ManifoldFactorizer(
            2,
            method="triplets",
            eigenvalue_tolerance=2.0,
            similarity_threshold=0.85,
            density_correction=arguments.density_correction,
            random_state=seed,
        ).fit(X)
        own = [
            [explained(side, function) for function in factor.functions[:, :2].T]
            for factor, side in zip(fit.factors_, truth, strict=False)
        ]
        separated = fit.n_factors_ == 2 and all(row[0] >= 0.95 for row in own)
        good += separated
        record(
            "rectangle: leading functions explained by their side",
            shape=arguments.shape,
            samples=arguments.samples,
            density_correction=arguments.density_correction,
            seed=seed,
            separated=bool(separated),
            own=own,
            functions=[int(np.size(factor.eigenvalues)) for factor in fit.factors_],
            verdict=fit.verdict_,
        )
    print(f"separated in {good} of {arguments.seeds}")


if __name__ == "__main__":
    main()
