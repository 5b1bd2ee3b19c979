"""Rates over seeds of the published and the default method on the paper's data."""

from studies.paper.cases import CASES
from studies.paper.finding import WAYS
from studies.paper.lab import Lab
from studies.paper.rates import by_label, in_words, measured, table_of
from studies.paper.section import Section, Settings


def trials(settings: Settings, lab: Lab) -> Section:
    """Return the table of success rates, which the paper does not have."""
    # The two figures' methods and, between them, the one that tells whether the kernel or the
    # algorithm makes the difference.
    methods = tuple(WAYS)
    records = measured(CASES, methods, settings.n, settings=settings, lab=lab)
    results = " ".join(in_words(method, CASES, records) for method in methods)
    caption = "Means over the seeds; verdicts are product / separable / partial / none."
    return Section(
        "Published method against default method, over seeds",
        [_what(settings), results, WHY],
        tables=[table_of(CASES, records, caption)],
        numbers=by_label(records),
    )


def _what(settings: Settings) -> str:
    return (
        f"{settings.n:,} samples, seeds {settings.seeds[0]} to {settings.seeds[-1]}. "
        "*Published*: the paper's algorithm with the paper's dense kernel, delta and "
        "gamma; told the number of factors. *Triplets*: the same algorithm, delta and "
        "gamma on this package's kernel (64 neighbours, bandwidth from the data, "
        "density correction); told the number, too. *Default*: nothing set, nothing "
        "told. Solved: the right number of factors, nearest-neighbour regression of "
        "every true factor on its own has R^2 of at least .95, on any other at most "
        ".10. R^2 own: a true factor that was not found counts as 0. Functions: how "
        "many each factor has; pure: R^2 of at least .9 on the true factor alone."
    )


WHY = (
    "The first two rows of each data set differ in the kernel only. Which is better "
    "depends on the data: a narrow kernel with density correction has purer functions "
    "on flat shapes and tells more products apart; a wide one averages noise away, "
    "which helps on noisy images. What no kernel repairs is that eigenfunctions of "
    "equal or nearly equal eigenvalues (the pairs of a circle, accidents elsewhere) "
    "are known up to a rotation only. The molecule with both stretches is a sheet "
    "times a circle, since its x and y are coupled a little (figure 3). Where a "
    "method takes the sheet apart into x and y, these predict somewhat more than .10 "
    "of each other, and the run counts as not solved. Where noise blurs the high "
    "functions, a method that reports more of them has a smaller share of pure ones."
)
