"""How much of two known motions is found in coordinates of cryoDRGN?

The file is an .npz archive with the coordinates `z` of particles of all views and the
truth, `angle` in radians and `stretch`. The coordinates are fitted as `manifactor fit`
does. Each motion is predicted from places on its factor by its nearest neighbours, and
for comparison from the coordinates themselves.
"""

import argparse
import os
import tempfile
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsRegressor

from manifactor import plots
from manifactor.runs.options import FitOptions
from manifactor.runs.sources import open_input
from manifactor.runs.task import fit_input, plan_fit
from manifactor.scores import regression_r2, score

from record import record


def truth_of(archive, symmetry: int) -> tuple[np.ndarray, np.ndarray]:
    """True stretch, (n, 1), and turn as a cosine and a sine, (n, 2).

    The states of a molecule of four-fold symmetry repeat after 90 degrees. The cosine
    of the angle itself would jump there, where the images do not.
    """
    turn = symmetry * archive["angle"].astype(float)
    stretch = archive["stretch"].astype(float)[:, None]
    return stretch, np.column_stack([np.cos(turn), np.sin(turn)])


def fitted(z: np.ndarray, seed: int):
    """The fit and the places of all samples, as `manifactor fit` makes them."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "z.npy"
        np.save(file, z)
        given = open_input(file).read(np.random.default_rng(seed))
        with warnings.catch_warnings(action="ignore"):
            return fit_input(given, plan_fit(given, FitOptions(seed=seed)))


def measured(fit, places, truth, seconds: float) -> dict:
    found = score([place.features for place in places], truth)
    return {
        "verdict": fit.verdict_,
        "sense": fit.evidence_.sense,
        "factors": [factor.shape for factor in fit.factors_],
        # One row for the stretch, one for the turn; one column for each factor.
        "r2": found.r2.round(3).tolist(),
        "seconds": round(seconds, 1),
    }


def draw(file: Path, places, truth) -> None:
    """Draw both factors against the truth, and the turn that the second one tells."""
    stretch, turn = truth
    along, around = places[0].features, places[1].features
    predicted = cross_val_predict(KNeighborsRegressor(20), around, turn)
    angles = np.degrees([np.arctan2(values[:, 1], values[:, 0]) for values in (turn, predicted)])
    with plots.style(plots.CLEAR):
        figure = plots.new_figure(8, 2.7)
        one, two, three = figure.subplots(1, 3)
        plots.place(one, along, stretch)
        one.set_title("factor 1 over the true stretch")
        plots.place(two, around, turn)
        two.set_title("factor 2, coloured by the true turn")
        plots.points(three, angles.T, angles[0], cmap=plots.circle_map())
        three.set_title("turn from factor 2 over the true turn")
        file.write_bytes(plots.clear_picture(figure, file.suffix))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help=".npz with z, angle and stretch")
    parser.add_argument("--symmetry", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--figure", type=Path, help=".png of the first seed")
    arguments = parser.parse_args()
    with np.load(arguments.file) as archive:
        z = archive["z"].astype(float)
        truth = truth_of(archive, arguments.symmetry)
    bound = [round(regression_r2(z, true), 3) for true in truth]
    print("from the coordinates themselves:", bound, flush=True)
    for seed in range(arguments.seeds):
        start = time.perf_counter()
        fit, places = fitted(z, seed)
        result = measured(fit, places, truth, time.perf_counter() - start)
        record("latents", n=len(z), seed=seed, bound=bound, **result)
        if arguments.figure is not None and seed == 0:
            draw(arguments.figure, places, truth)


if __name__ == "__main__":
    main()
