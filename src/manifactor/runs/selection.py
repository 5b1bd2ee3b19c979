"""Samples in ranges of factors, as a file of any supported format."""

import io
import pickle
from collections.abc import Callable, Sequence

import numpy as np

from manifactor._support.extras import extra
from manifactor.cryoem.cryosparc import npy_bytes
from manifactor.cryoem.formats import particles_with
from manifactor.runs.places import coordinate_columns, table_as_csv, to_table
from manifactor.runs.run import Run


def selected(
    run: Run,
    ranges: Sequence[tuple[int, float, float]],
    *,
    least_confidence: float = 0.0,
) -> np.ndarray:
    """Return the samples in all ranges, ascending.

    Parameters
    ----------
    run : Run
    ranges : sequence of (factor, low, high)
        Factors are counted from 1; bounds as in `Place.between`.
    least_confidence : float
        Least confidence of a sample's place on every factor.
    """
    inside = np.ones(len(run.rows), dtype=bool)
    for place in run.places:
        if place.confidence is not None:
            inside &= place.confidence >= least_confidence
    for factor, low, high in ranges:
        inside &= run.place(factor).between(low, high)
    if not inside.any():
        raise ValueError("the ranges must hold some samples; got none. Widen them.")
    return np.flatnonzero(inside)


def selection(run: Run, chosen: np.ndarray, suffix: str) -> bytes:
    """Return the chosen samples as the bytes of a file of that suffix."""
    if suffix not in SELECTIONS:
        raise ValueError(
            f"--out must end in one of {', '.join(SELECTIONS)}; got "
            f"{suffix or 'no ending'}."
        )
    return SELECTIONS[suffix](run, chosen)


def _as_particles(suffix: str) -> Callable[[Run, np.ndarray], bytes]:
    def write(run: Run, chosen: np.ndarray) -> bytes:
        particles = run.particles
        if particles.path.suffix.lower() != suffix:
            raise ValueError(
                f"the run's particles are {particles.path.name}; choose --out with the "
                "same ending."
            )
        columns = coordinate_columns([place[chosen] for place in run.places], suffix)
        return particles_with(particles[chosen], columns)

    return write


def _as_csv(run: Run, chosen: np.ndarray) -> bytes:
    return table_as_csv([place[chosen] for place in run.places], run.rows[chosen])


def _as_parquet(run: Run, chosen: np.ndarray) -> bytes:
    places = [place[chosen] for place in run.places]
    header, columns = to_table(places, run.rows[chosen])
    # Sample numbers stay integers; the table of a .csv file holds floats only.
    arrays = {"sample": run.rows[chosen]}
    arrays |= dict(zip(header[1:], columns.T[1:], strict=True))
    buffer = io.BytesIO()
    extra("pyarrow.parquet").write_table(extra("pyarrow").table(arrays), buffer)
    return buffer.getvalue()


def _as_pickle(run: Run, chosen: np.ndarray) -> bytes:
    return pickle.dumps(run.rows[chosen])  # cryoDRGN's ind.pkl


def _as_npy(run: Run, chosen: np.ndarray) -> bytes:
    return npy_bytes(run.rows[chosen])


SELECTIONS: dict[str, Callable[[Run, np.ndarray], bytes]] = {
    ".star": _as_particles(".star"),
    ".cs": _as_particles(".cs"),
    ".csv": _as_csv,
    ".pkl": _as_pickle,
    ".npy": _as_npy,
    ".parquet": _as_parquet,
}
