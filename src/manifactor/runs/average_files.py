"""Averages as files: stacks or volumes, pictures, a movie and a table of the bins."""

from pathlib import Path

import numpy as np

from manifactor.cryoem.movies import chimerax_script
from manifactor.cryoem.mrc import write_stack, write_volume
from manifactor.cryoem.pictures import grid_picture, strip, write_png
from manifactor.runs.averaging import Averages


def write_averages(averages: Averages, folder: Path) -> list[str]:
    """Write means, pictures and a movie into a folder."""
    write_pictures = _write_strip if len(averages.shape) == 1 else _write_grid
    write_means = _write_volumes if averages.of_volumes else _write_images
    written = write_pictures(averages, folder) + write_means(averages, folder)
    written += _write_halves(averages, folder)
    (folder / "bins.csv").write_text(_bins_table(averages), encoding="utf-8")
    return [*written, "bins.csv"]


def _write_strip(averages: Averages, folder: Path) -> list[str]:
    shown = averages.images
    picture = strip(shown, captions=averages.captions[0])
    write_png(folder / "averages.png", picture)
    movies = averages.movies
    for kind, content in movies.items():
        (folder / f"averages{kind}").write_bytes(content)
    # The movies first: they show the motion at a glance.
    return [*(f"averages{kind}" for kind in movies), "averages.png"]


def _write_grid(averages: Averages, folder: Path) -> list[str]:
    shown = averages.images
    rows, columns = averages.captions
    # A grid has no order in which to play it, so there is no movie.
    grid = shown.reshape(*averages.shape, *shown.shape[1:])
    picture = grid_picture(grid, rows=rows, columns=columns)
    write_png(folder / "averages.png", picture)
    return ["averages.png"]


def _write_images(averages: Averages, folder: Path) -> list[str]:
    path = folder / "averages.mrcs"
    write_stack(path, averages.means, pixel_size=averages.pixel_size)
    return [path.name]


def _write_volumes(averages: Averages, folder: Path) -> list[str]:
    # Where there is no volume, zeros would be a gap in the movie.
    filled = averages.filled
    # Leading zeros keep the order where a program sorts by name.
    names = [f"average_{k + 1:03d}.mrc" for k in filled]
    for k, name in zip(filled, names, strict=True):
        write_volume(folder / name, averages.means[k], pixel_size=averages.pixel_size)
    script = chimerax_script(names, circular=averages.is_circular)
    (folder / "averages.cxc").write_text(script, encoding="utf-8")
    return ["averages.cxc", *names]


def _write_halves(averages: Averages, folder: Path) -> list[str]:
    """Write the half-set averages, of images as stacks and of volumes as maps."""
    if averages.halves is None:
        return []
    names = []
    size = averages.pixel_size
    for number, means in enumerate(averages.halves.means, start=1):
        if not averages.of_volumes:
            names.append(f"averages_half{number}.mrcs")
            write_stack(folder / names[-1], means, pixel_size=size)
            continue
        for k in np.flatnonzero(averages.halves.filled[number - 1]):
            names.append(f"average_{k + 1:03d}_half{number}.mrc")
            write_volume(folder / names[-1], means[k], pixel_size=size)
    return names


def _bins_table(averages: Averages) -> str:
    """Return a table in CSV with one row for each bin."""
    n_factors = len(averages.shape)
    header = [f"centre{i}" for i in range(1, n_factors + 1)]
    columns = ["bin", "samples", "effective_size", *header]
    halves = averages.halves
    if halves is not None:
        columns.append("half_correlation")
    lines = [",".join(columns)]
    counts, sizes = averages.matching.counts, averages.matching.effective_sizes
    for k, position in enumerate(np.ndindex(*averages.shape)):
        pairs = zip(averages.centres, position, strict=True)
        cells = [f"{k + 1}", f"{counts[k]}", f"{sizes[k]:.1f}"]
        cells += [f"{along[i]:.6g}" for along, i in pairs]
        if halves is not None:
            cells.append(f"{halves.correlations[k]:.4f}")
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"
