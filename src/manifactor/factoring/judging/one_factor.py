"""Evidence on one factor: why no other was found."""

from collections.abc import Sequence

import numpy as np

from manifactor._support.warning import warn_caller
from manifactor.factoring.gradients.dimensions import Peeled
from manifactor.factoring.gradients.division import Split
from manifactor.factoring.gradients.peeling import Peeling
from manifactor.factoring.judging.criteria import judges
from manifactor.factoring.judging.criterion import Test
from manifactor.factoring.judging.evidence import Evidence, SampleWarning
from manifactor.factoring.judging.limits import EvidenceSettings
from manifactor.factoring.measures.evenness import (
    Evenness,
    EvennessSettings,
    clusters,
    clusters_in_words,
    clusters_of_function,
    evenness,
)
from manifactor.factoring.measures.lines import along_line
from manifactor.factoring.measures.settings import MeasureSettings
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.neighbors import chosen


def weigh_one(
    peeled: Peeled,
    *,
    settings: EvidenceSettings = EvidenceSettings(),
    measuring: MeasureSettings = MeasureSettings(),
) -> Evidence:
    """Return the evidence on one factor that was found by peeling, and why only one.

    Too few samples, too noisy, in clusters, uneven, irreducible, or a spectrum that is too short:
    the tests are taken in this order up to the first that fails.
    """
    peeling, dimensions = peeled.peeling, peeled.dimensions
    look, split = peeling.looks[0], peeling.splits[0]
    n, noise = len(look.part), noise_of(split)
    judge = judges(settings)
    # Functions whose q is 1 or more are structureless, whatever its noise.
    might_divide = bool((split.q < 1).any())
    shares = _clusters(peeling, measuring.evenness)
    tests = [
        judge["samples"](n),
        judge["uncertainty"](noise if might_divide else 0.0, samples=n),
        judge["clusters"](len(shares), sizes=_sizes(shares)),
    ]
    even = density_of(peeled.diffusion, settings=measuring.evenness)
    if even is not None:
        tests.append(judge["evenness"](even.spread, ratio=even.ratio))
    if peeling.refused is not None:
        share = peeling.refused.product_share
        tests.append(judge["further product"](share))
    lacking = dimensions.data - dimensions.found if dimensions.missing else 0.0
    n_functions = len(look.geometry.eigenvalues)
    tests.append(judge["missing dimensions"](lacking, functions=n_functions))
    tests.append(judge["blocks"](len(look.blocks)))
    _warn_if_unsure(tests, n, even, settings)
    return Evidence(_up_to_first_failure(tests), null=noise, settings=settings)


def weigh_line(
    diffusion: Diffusion,
    *,
    settings: EvidenceSettings = EvidenceSettings(),
    measuring: MeasureSettings = MeasureSettings(),
) -> Evidence | None:
    """Return the evidence on samples on a straight line; None if they are on none."""
    if diffusion.points is None:
        return None
    along = along_line(diffusion.points, diffusion.graph.distinct)
    if along is None:
        return None
    shares = clusters(along, settings=measuring.evenness)
    gaps = f", and fall into {_sizes(shares)}" if len(shares) > 1 else ""
    return Evidence((judges(settings)["directions"](1, gaps=gaps),), settings=settings)


def noise_of(split: Split) -> float:
    """Return the largest noise of the q that a batch of functions was divided by."""
    return float(split.noise.max(initial=0))


def density_of(
    diffusion: Diffusion, *, settings: EvennessSettings = EvennessSettings()
) -> Evenness | None:
    """Return how even the samples are; None where only distances are known."""
    if diffusion.points is None:
        return None
    samples = chosen(diffusion.points, diffusion.graph.distinct)
    return evenness(np.asarray(samples), diffusion.dimension, settings=settings)


def _clusters(peeling: Peeling, settings: EvennessSettings) -> tuple[float, ...]:
    """Shares of the samples in each cluster, along the function that shows most."""
    functions = peeling.looks[0].geometry.spectrum.functions
    lowest = functions[:, 1 : 1 + settings.functions]
    found = [clusters_of_function(f, settings=settings) for f in lowest.T]
    return max(found, key=len)


def _sizes(shares: tuple[float, ...]) -> str:
    return clusters_in_words(shares) if len(shares) > 1 else ""


def _up_to_first_failure(tests: Sequence[Test]) -> tuple[Test, ...]:
    """Tests up to the first that fails: those after it rest on what it denies."""
    failed = [i for i, test in enumerate(tests) if not test.passed]
    return tuple(tests[: failed[0] + 1])


def _warn_if_unsure(
    tests: Sequence[Test], n_samples: int, even: Evenness | None, settings: EvidenceSettings
) -> None:
    """Warn if the first test, of the number of samples, or the second, of q, fails."""
    enough, certain = tests[:2]
    if not enough.passed:
        warn_of_few_samples(
            # A number to try, well above the least one.
            5 * settings.samples,
            f"{n_samples} distinct samples show little of any manifold",
            even,
            settings=settings,
        )
    elif not certain.passed:
        warn_of_few_samples(
            # Noise falls inversely with the number of samples; aim at half the limit.
            int(n_samples * certain.value / (settings.uncertainty / 2)),
            f"the number of factors is uncertain by {certain.value:.2f} of the range "
            "it is read from",
            even,
            settings=settings,
        )


def warn_of_few_samples(
    enough: int, what: str, even: Evenness | None, *, settings: EvidenceSettings
) -> None:
    """Warn of few or noisy samples, with the number that would help.

    The noise of even samples falls with their number. Uneven samples have tails, where functions
    are peaks on single samples; more samples only show more of the tails.
    """
    remedy = f"About {enough} samples would help."
    if even is not None and even.spread > settings.evenness:
        remedy = (
            f"Their density varies {even.ratio:.2g}-fold, so that more samples of the "
            "same kind may not help."
        )
    warn_caller(
        f"The samples are too few or too noisy for a sure verdict: {what}. {remedy}", SampleWarning
    )
