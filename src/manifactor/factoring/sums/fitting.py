"""Factors fitted to samples, each to what all others leave."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from manifactor.factoring.sums.reading import (
    Reading,
    ReadingSettings,
    opened,
    read_factor,
    read_surface,
)
from manifactor.factoring.sums.sheets import Projection, Sheet, lay_sheet


@dataclass(frozen=True)
class FittingSettings:
    """Settings of `polish`."""

    # Rounds in which each factor is fitted to what the others leave, at most, and the relative
    # change of what all leave at which they end. Each round takes off a share of the error that is
    # the squared cosine between the factors' directions.
    rounds: int = 5
    settled: float = 0.05
    # Share of the variance that may be left in any case: a thousandth of a factor that is thirty
    # times smaller than another.
    negligible: float = 1e-6
    # A factor is read anew where it explains less than this of what the others leave: its first
    # reading may have seen an overtone only, which folds it.
    clear: float = 0.98
    # Times that factors are read anew, at most: once more where a curve is tangled. Places in the
    # wrong order explain as much as those in the right one.
    readings: int = 2
    reading: ReadingSettings = field(default_factory=ReadingSettings)


@dataclass(frozen=True)
class Fitted:
    """One factor of a sum, fitted to samples."""

    sheet: Sheet  # `sheet.explained` is the share of what the others leave that it explains
    at: Projection  # where the samples lie on it
    # Share that the places explained as they were read, before any sheet was laid. A curve that is
    # laid again and again may fill a surface; a place that is read cannot.
    shown: float

    @property
    def variance(self) -> float:
        """Variance of the samples that the factor explains."""
        return float(self.at.means.var(axis=0).sum())

    @property
    def reading(self) -> Reading:
        """The places alone."""
        return Reading(self.sheet.topology, self.at.places, self.shown)


def rest_of(samples: np.ndarray, factors: Sequence[Fitted]) -> np.ndarray:
    """Return what factors leave of samples."""
    rest = samples
    for factor in factors:
        rest = rest - factor.at.means
    return rest


def share_left(samples: np.ndarray, factors: Sequence[Fitted]) -> float:
    """Return the share of the samples' variance that factors leave."""
    return float((rest_of(samples, factors) ** 2).sum() / (samples**2).sum())


@dataclass(frozen=True)
class Fitter:
    """Reads factors from samples, and fits each to what the others leave."""

    n_neighbors: int  # neighbours in the graphs of what is left of the samples
    surfaces: bool  # whether a factor may be a surface
    settings: FittingSettings
    rng: np.random.Generator

    def read(self, samples: np.ndarray) -> Reading:
        """Return one factor of samples, (n, q)."""
        return read_factor(
            samples - samples.mean(axis=0),
            n_neighbors=self.n_neighbors,
            surfaces=self.surfaces,
            settings=self.settings.reading,
            rng=self.rng,
        )

    def fit(self, samples: np.ndarray, reading: Reading) -> Fitted:
        """Lay a sheet through samples at known places."""
        sheets = self.settings.reading.sheets
        sheet = lay_sheet(reading.places, reading.topology, samples, settings=sheets)
        at = sheet.project(samples, settings=sheets)
        return Fitted(sheet, at, reading.explained)

    def polish(self, samples: np.ndarray, factors: Sequence[Fitted]) -> list[Fitted]:
        """Fit each factor to what the others leave, in turn; the best round counts."""
        factors = self._each(samples, factors, self._fit_again)
        for _ in range(self.settings.readings):
            factors = self._each(samples, factors, self._read_again)
            factors = self._fit_rounds(samples, factors)
            if not any(self.tangled(factor) for factor in factors):
                return list(factors)
        if not self.surfaces:
            return list(factors)
        factors = self._each(samples, factors, self._untangled)
        return list(self._fit_rounds(samples, factors))

    def _fit_rounds(self, samples: np.ndarray, factors: Sequence[Fitted]) -> Sequence[Fitted]:
        """Sheets laid anew round by round; the best round counts."""
        best = factors
        last = least = share_left(samples, factors)
        for _ in range(self.settings.rounds):
            factors = self._each(samples, factors, self._fit_again)
            left = share_left(samples, factors)
            if left < least:
                best, least = factors, left
            small = left < self.settings.negligible
            if small or left > (1 - self.settings.settled) * last:
                break
            last = left
        return best

    def shown_anew(self, samples: np.ndarray, factors: Sequence[Fitted]) -> list[float]:
        """Return the shares that places explain if they are read from what is left.

        Of what the other factors leave; only where a first reading explained little.
        """
        rest = rest_of(samples, factors)
        enough = 1 - self.settings.reading.curve_leaves
        return [
            factor.shown if factor.shown > enough else self.read(rest + factor.at.means).explained
            for factor in factors
        ]

    def _each(
        self,
        samples: np.ndarray,
        factors: Sequence[Fitted],
        work: Callable[[np.ndarray, Fitted], Fitted],
    ) -> list[Fitted]:
        """Apply `work` to each factor, given what the others leave."""
        rest = rest_of(samples, factors)
        done = []
        for factor in factors:
            target = rest + factor.at.means
            done.append(work(target, factor))
            rest = target - done[-1].at.means
        return done

    def _fit_again(self, target: np.ndarray, factor: Fitted) -> Fitted:
        """The factor fitted to `target`, at its places on the old sheet."""
        at = factor.sheet.project(target, settings=self.settings.reading.sheets)
        # A sheet measures lengths, so that a gap may be wider on it than when read.
        reading = opened(replace(factor, at=at).reading, settings=self.settings.reading)
        return self.fit(target, reading)

    def _read_again(self, target: np.ndarray, factor: Fitted) -> Fitted:
        """The factor fitted again, or read anew where it explains little or is tangled.

        A new reading must explain more than the old fit, which was fitted many times.
        """
        again = self._fit_again(target, factor)
        tangled = self.tangled(again)
        if again.sheet.explained > self.settings.clear and not tangled:
            return again
        anew = self.fit(target, self.read(target))
        enough = self.settings.clear if tangled else again.sheet.explained
        return anew if anew.shown > enough else again

    def _untangled(self, target: np.ndarray, factor: Fitted) -> Fitted:
        """The factor, or a surface in place of a tangled curve."""
        if not self.tangled(factor):
            return factor
        reading = read_surface(target - target.mean(axis=0), settings=self.settings.reading)
        return self.fit(target, reading)

    def tangled(self, factor: Fitted) -> bool:
        """Return whether a factor is a curve that covers a piece twice, or jumps."""
        return factor.sheet.tangled(settings=self.settings.reading.sheets)

    def is_no_curve(self, factor: Fitted) -> bool:
        """Return whether a factor is a tangled curve that leaves much unexplained."""
        leaves = 1 - factor.sheet.explained
        return leaves > self.settings.reading.curve_leaves and self.tangled(factor)
