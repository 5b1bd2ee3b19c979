"""Blocks of pure functions that have all dimensions of the data."""

from dataclasses import replace

import numpy as np

from manifactor._support.errors import NothingFoundError
from manifactor.factoring.gradients.dimensions import Dimensions, Peeled
from manifactor.factoring.gradients.energy import count_directions
from manifactor.factoring.gradients.looks import take_looks
from manifactor.factoring.gradients.peeling import Peeling, peel
from manifactor.factoring.gradients.proposals import Look
from manifactor.factoring.gradients.purity import PuritySettings, batch_size, without_energy
from manifactor.factoring.gradients.residuals import leaves_noise
from manifactor.factoring.settings import FactoringSettings
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.neighbors import chosen


def peel_all_dimensions(
    diffusion: Diffusion, settings: FactoringSettings, *, grow: bool, rng: np.random.Generator
) -> Peeled:
    """Peel off factors; `grow` doubles the functions while a dimension is missing."""
    while True:
        looks = take_looks(
            diffusion, settings=settings.looks, gradients=settings.gradients, rng=rng
        )
        peeling = peel(looks, at_least=settings.n_asked or 1, settings=settings.peeling, rng=rng)
        dimensions = _dimensions(peeling, diffusion, settings)
        # A much smaller factor has its lowest function far up in the spectrum.
        longer = diffusion.grown(rng) if grow and dimensions.missing else None
        if longer is None:
            return Peeled(diffusion, peeling, dimensions)
        diffusion = longer


def with_refused(peeled: Peeled, settings: FactoringSettings) -> Peeled | None:
    """Return the peeling as if what it refused were factors; None if it did not."""
    refused = peeled.peeling.refused
    if refused is None:
        return None
    dimensions = _dimensions(refused.peeling, peeled.diffusion, settings)
    return replace(peeled, peeling=refused.peeling, dimensions=dimensions)


def _dimensions(peeling: Peeling, diffusion: Diffusion, settings: FactoringSettings) -> Dimensions:
    """Dimensions of the data and of the blocks.

    None is missing where a further factor was refused, or where what the blocks leave of the
    samples is noise.
    """
    look = peeling.looks[0]
    of_data = diffusion.dimension
    found = sum(count_directions(look.geometry, block) for block in look.blocks)
    # A refused factor is not missing: it is there, and no factor of a product.
    fewer = found + settings.evidence.dimensions < of_data
    missing = peeling.refused is None and fewer
    if missing and diffusion.points is not None and look.blocks:
        # On the paper's rectangle, whose noise of .05 counts as a third dimension, this saves
        # computing 400 functions: 5 s instead of 40 at 10,000 samples.
        samples = chosen(diffusion.points, diffusion.graph.distinct)
        places = _places(look, settings.peeling.purity)
        missing = not leaves_noise(
            places, samples, settings=settings.residuals, prediction=settings.measures.prediction
        )
    return Dimensions(of_data, found, missing)


def _places(look: Look, settings: PuritySettings) -> np.ndarray:
    """Where samples lie on the blocks, (n, c), in units of length."""
    places = []
    for block in look.blocks:
        eigenvalues = look.geometry.rayleigh(block)
        lowest = block[:, : batch_size(eigenvalues, settings=settings)]
        # A function of eigenvalue l has gradients of mean square l.
        places.append(look.geometry.values(lowest / np.sqrt(eigenvalues[0])))
    return np.hstack(places)


def as_many_as(
    asked: int | None, peeling: Peeling, *, settings: PuritySettings = PuritySettings()
) -> list[np.ndarray]:
    """Return the blocks found, or as many as were asked for.

    If there are more, the highest are taken together.
    """
    geometry, blocks = peeling.looks[0].geometry, list(peeling.looks[0].blocks)
    blocks.sort(key=lambda block: float(geometry.rayleigh(block)[0]))
    if asked is None or asked == len(blocks):
        return blocks
    if asked > len(blocks):
        raise NothingFoundError(
            f"`n_factors` must not exceed what the data show; {asked} were asked for "
            f"and {len(blocks)} found: no function was left that does not vary along "
            "those. Lower `n_factors`, or give more samples."
        )
    kept, joined = blocks[: asked - 1], blocks[asked - 1 :]
    # What has no energy along the kept blocks includes the products of the joined ones, which are
    # functions of the joint factor.
    rest = without_energy(geometry, kept, settings=settings)
    return [*kept, rest if rest.shape[1] else np.hstack(joined)]
