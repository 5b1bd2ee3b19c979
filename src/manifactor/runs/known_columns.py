"""Columns of numbers that are known of a run's samples, by name."""

from difflib import get_close_matches
from pathlib import Path

import numpy as np

from manifactor.cryoem.cryosparc import read_cs
from manifactor.cryoem.star import particle_block
from manifactor.cryoem.star_tables import read_star
from manifactor.inputs.columns import ColumnChoice
from manifactor.inputs.files import read_table
from manifactor.inputs.stored import stored_table
from manifactor.inputs.tables import column_names
from manifactor.runs.places import to_table
from manifactor.runs.run import Run


def known_column(run: Run, name: str) -> np.ndarray:
    """Return the values of a column for every sample of a run.

    Returns (n,).
    """
    header, places = to_table(run.places, run.rows)
    names = list(header)
    if name in header:
        return places[:, header.index(name)]
    for columns in (_of_particles, _of_table):
        found, values = columns(run, name)
        if values is not None:
            return values
        names += found
    near = get_close_matches(name, names, n=5, cutoff=0.5) or names[:8]
    raise ValueError(f"there is no column {name!r} of numbers; the nearest are {', '.join(near)}.")


def _of_particles(run: Run, name: str) -> tuple[list[str], np.ndarray | None]:
    """Return the names of the columns of the particles, and the values of one."""
    if "particles" not in run.record:
        return [], None
    particles = run.particles
    is_star = particles.path.suffix.lower() == ".star"
    columns = (_star_columns if is_star else _cs_columns)(particles.path)
    numbers = {own: column for own, column in columns.items() if _is_numeric(column)}
    # RELION's labels start with an underscore in the file, and nowhere else.
    wanted = name.removeprefix("_") if is_star else name
    if wanted not in numbers:
        return list(numbers), None
    return list(numbers), numbers[wanted][particles.rows].astype(float)


def _star_columns(path: Path) -> dict[str, np.ndarray]:
    blocks = read_star(path)
    table = blocks[particle_block(blocks, path)]
    return {name: table[name].to_numpy() for name in table.columns}


def _cs_columns(path: Path) -> dict[str, np.ndarray]:
    table = read_cs(path)
    columns = {}
    for name in table.dtype.names or ():
        if table[name].ndim == 1:
            columns[name] = table[name]
        elif table[name].ndim == 2:
            parts = table[name].T
            columns |= {f"{name}.{k}": part for k, part in enumerate(parts)}
    return columns


def _is_numeric(column: np.ndarray) -> bool:
    return column.dtype.kind in "fiub"


def _of_table(run: Run, name: str) -> tuple[list[str], np.ndarray | None]:
    """Return the names of the columns that were fitted or left out, and one of them."""
    if "columns" not in run.record or not run.input.exists():
        return [], None
    names = column_names(run.input)
    if name not in names:
        return names, None
    choice = ColumnChoice(labels=(name,))
    if run.drawn:
        return names, stored_table(run.input, choice).take(run.rows)[:, 0]
    values = read_table(run.input, choice).samples[:, 0]
    if len(values) != len(run.rows):
        raise ValueError(
            f"{run.input} has {len(values)} rows now and had {len(run.rows)} when "
            "fitted. Fit again."
        )
    return names, values
