"""Where samples come from: kinds of inputs, and what is known of the runs of each."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.plugins import loaded
from manifactor.estimators import ManifoldFactorizer
from manifactor.estimators.arrays import draw_count, draw_rows
from manifactor.judging.evidence import Evidence
from manifactor.runs.options import OF_MOVES, PARTS, TABLE, FitOptions
from manifactor.tables.columns import ColumnChoice
from manifactor.tables.files import MoveChoice
from manifactor.tables.reading import Input, Opened, UnreadTable, joined, read_input
from manifactor.tables.stores import in_parts, stored_table

View = tuple[float, float]


class Source:
    """A kind of input, and what is known of its runs; this class adds nothing.

    A package adds one as an entry point of the group `manifactor.sources`.
    """

    @staticmethod
    def open(
        path: Path, options: FitOptions, view: View | None, further: tuple[Path, ...]
    ) -> Opened | None:
        """Open an input, whose files are checked; None for inputs of other kinds.

        `further` inputs are fitted together with it.
        """
        return None

    @staticmethod
    def paired(table: Input, options: FitOptions) -> Input:
        """Return a table with what the options tell of its rows."""
        return table

    @staticmethod
    def fit(options: FitOptions) -> bool:
        """Do all that the command `fit` does, if the options ask for another fit."""
        return False

    @staticmethod
    def run(record: Mapping) -> Any:
        """Return the class of runs with such a record; None for runs of other kinds."""
        return None

    @staticmethod
    def evidence(evidence: Evidence, record: Mapping) -> Evidence:
        """Return the evidence of a fit with what the record of its run adds."""
        return evidence


class Stores(Source):
    """Tables on disk of which rows are read: samples to fit are drawn, none is read yet."""

    @staticmethod
    def open(
        path: Path, options: FitOptions, view: View | None, further: tuple[Path, ...]
    ) -> Opened | None:
        """Open a large table."""
        if not in_parts(path, options.coordinates):
            if options.coordinates == "parquet":
                raise ValueError(
                    "--coordinates parquet goes with .npy, .parquet, Zarr, and folders of "
                    f".parquet, of which rows are read; got {path}. Leave it out."
                )
            return None
        options.require(path, PARTS)
        table = stored_table(path, ColumnChoice(options.columns, options.drop))
        n_samples, n_columns = table.shape
        count = draw_count(options.fit_samples, n_samples)
        ManifoldFactorizer(**options.parameters).require_room(count, n_columns)
        rows = draw_rows(n_samples, count, np.random.default_rng(options.seed))
        return UnreadTable(table, rows, options.standardise)


class Tables(Source):
    """Tables that are read as a whole, which all other inputs are."""

    @staticmethod
    def open(
        path: Path, options: FitOptions, view: View | None, further: tuple[Path, ...]
    ) -> Opened | None:
        """Read a table, and what is known of its moves."""
        # What reads the particles that rows belong to goes with a table, too.
        paired = ("datadir", "pixel_size") if options.particles else ()
        options.require(path, TABLE, *paired)
        moves = MoveChoice(**options.values(*OF_MOVES))
        columns = ColumnChoice(options.columns, options.drop, apart=moves.apart)
        parts = [read_input(each, columns) for each in (path, *further)]
        for source in sources():
            parts = [source.paired(part, options) for part in parts]
        table = joined(parts)
        if options.standardise:
            table = table.standardised()
        if moves.options:
            assert table.columns is not None
            counts = [part.n_samples for part in parts]
            files = list(zip((path, *further), counts, strict=True))
            table = replace(table, moves=moves.read(files, table.columns))
        return table


def sources() -> list[type[Source]]:
    """Return all kinds of inputs, those that take any path last."""
    return [Stores, *loaded("sources").values(), Tables]


def open_input(
    path: Path | str,
    options: FitOptions = FitOptions(),
    view: View | None = None,
    further: tuple[Path, ...] = (),
) -> Opened:
    """Open an input: a table is read, others are only checked."""
    opened = (source.open(Path(path), options, view, further) for source in sources())
    return next(each for each in opened if each is not None)
