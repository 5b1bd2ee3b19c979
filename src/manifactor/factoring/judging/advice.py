"""What a verdict means in words, and what to do next."""

from collections.abc import Iterable
from dataclasses import dataclass

from manifactor.factoring.measures.placed_samples import NOT_MEASURED

# The sense in which data are a product, where all tests were passed.
SENSES = {
    "geometry": (
        "They are a product of lengths: directions of different factors are "
        "orthogonal, and lengths along one do not depend on the others."
    ),
    "density": (
        "They are a product of lengths and of density: the factors are orthogonal, and "
        "the samples are distributed independently on them."
    ),
    "volume": (
        "They are a product in units of the distance between samples: lengths along "
        "all factors change together, with the density."
    ),
    "sum": (
        "They are a sum: each factor moves the samples by a function of its own, "
        "whatever the others do."
    ),
}
# A sum some of whose terms have several factors.
SUM_OF_TERMS = (
    "They are a sum: each term moves the samples by a function of its own, whatever the others do."
)

# What a failure of a test means for one factor.
ANSWERS = {
    "samples": "cannot tell",
    "uncertainty": "cannot tell",
    "clusters": "cannot tell",
    "evenness": "cannot tell",
    "missing dimensions": "cannot tell",
    "triplets": "cannot tell",
    "further product": "no product",
}


@dataclass(frozen=True)
class DataKnown:
    """What is known of the data beside the tests, as far as advice depends on it."""

    n_samples: int | None = None  # distinct samples; None where it is not known
    n_columns: int = 0  # columns as given, before any preparation
    # Share of the variance of prepared samples that is noise; nan if not known
    noise: float = NOT_MEASURED
    uneven: bool = False  # whether the density varies so much that more samples may not help
    circles: bool = True  # whether a factor is a circle, which a twisted product needs
    # What to do about columns that are likely no measurement; "" if there are none
    columns: str = ""


@dataclass(frozen=True)
class AdviceSettings:
    """Settings of `advise`."""

    # Fewer samples are few: a thousand show most products of two curves.
    few_samples: int = 1000
    # Share of the variance from which noise counts: a twentieth moves places by a fifth of their
    # standard deviation.
    noise: float = 0.05
    # More columns are likely pixels or other neighbours of each other.
    many_columns: int = 64
    # The first pieces of advice matter most, and more are not read.
    pieces: int = 2


# Tests that few samples or noise can make fail on a product.
UNSURE = frozenset(
    {
        "product",
        "completeness",
        "modulation",
        "undivided",
        "explained",
        "lowest functions",
        "parts",
        "leakage",
        "agreement",
        "dimensions",
        "folds",
        "sum",
        "own share",
        "structured rest",
        "independence",
        "reliability",
        "uncertainty",
        "missing dimensions",
        "further product",
        "blocks",
        "terms",
    }
)
# Why one factor was found, which says what to do whatever the cause.
ONE_FACTOR = frozenset({"further product", "blocks", "terms"})
# The halves of the samples disagree.
UNCERTAIN = frozenset({"agreement", "uncertainty"})
TWISTED = (
    "Fit a part of the samples: a twisted product is one on each half. Follow the "
    "samples once around a circle: they may come back reversed."
)
UNEVEN = (
    "Take a logarithm or ranks of columns with long tails, or thin the samples where "
    "they lie densest."
)
MORE_FUNCTIONS = (
    "Raise `n_functions` (the default tries 400 at most), or scale up the columns of a "
    "small factor."
)
# What to do next, by the test that failed, the gravest first.
ADVICE = {
    "directions": (
        "Take the data as one factor: its coordinate orders samples along the line. A "
        "product takes columns that vary independently."
    ),
    "samples": "Add samples: a thousand show most products of two curves.",
    "agreement": "Add samples, or remove noise: average, or leave out noisy columns.",
    "uncertainty": "Add samples, or remove noise: average, or leave out noisy columns.",
    "reliability": ("Average, or leave out noisy columns: single coordinates are uncertain."),
    "clusters": "Fit each cluster by itself, or add samples between them.",
    "evenness": UNEVEN,
    "triplets": "Leave `method` at its default.",
    "connected": "Leave `method` at its default.",
    "groups": "Leave `method` at its default.",
    "twist": TWISTED,
    "undivided": "Ask for one factor more with `n_factors`, and compare.",
    "dimensions": MORE_FUNCTIONS,
    "missing dimensions": MORE_FUNCTIONS,
    "explained": (
        "Look at the columns that the factors do not explain: without them the fit may "
        "show a product."
    ),
    "lowest functions": "Add samples, or ask for one factor more with `n_factors`.",
    "parts": ("Scale up the columns of a small factor: it is too small beside the others."),
    "folds": (
        "Use the other factors, but not the coordinate of the folded one: samples of "
        "several kinds share it. More samples where they are few along it would help."
    ),
    "poles": (
        "Leave out the samples around the point that a factor shrinks to: the factor "
        "has no coordinate there."
    ),
    "sum": "Use the factors with care: much of the data is no function of them.",
    "own share": ("Use the other factors: one of them explains little that the others do not."),
    "structured rest": (
        "Use the factors, and look at what they leave: it is no noise, and may be a "
        "factor of its own."
    ),
    "identified": (
        "Use the coordinates together: of Gaussian samples, other axes are as good, "
        "and standardised columns give others. Columns in which the factors have "
        "edges would fix the axes."
    ),
    "axes": ("Take the factors together: other axes explain the samples nearly as well."),
    "leakage": "Use the coordinates together: each tells something of the other.",
    "completeness": (
        "Ask for one factor more with `n_factors`, and compare: the data vary in ways "
        "that the factors do not have. Noise looks like that, too."
    ),
    "modulation": (
        "Fit a part of the samples, such as one range of a column: the factors change "
        "along each other."
    ),
    "product": (
        "Fit a part of the samples, such as one range of a column: a product may hold there."
    ),
    "modulation in data": (
        "Use the coordinates, they are right; but steps along one factor have other "
        "lengths where the other factor has another coordinate."
    ),
    "filling": ("Use the coordinates, they are right; but not every combination of them occurs."),
    "skew": (
        "Use the coordinates, they tell samples apart; but moving along one factor "
        "moves a sample along the other, too."
    ),
    "crossing": (
        "Use the coordinates, they tell samples apart; but the factors are orthogonal "
        "in a part of the data only."
    ),
    "independence": (
        "Use the coordinates, but not as independent numbers: one tells of the other."
    ),
    "further product": (
        "Fit a part of the samples, or take the data as one factor: its embedding "
        "tells samples apart."
    ),
    "blocks": "Take the data as one factor: its embedding tells samples apart.",
    "terms": "Take the data as one factor: its embedding tells samples apart.",
}
# Coordinates that can be used as they are; not where a graver test failed, too.
USABLE = frozenset({"modulation in data", "filling", "skew", "crossing", "independence"})


def advise(
    failed: Iterable[str],
    known: DataKnown = DataKnown(),
    *,
    settings: AdviceSettings = AdviceSettings(),
) -> str:
    """Return what to do next, in sentences; "" where nothing follows.

    Columns that are no measurement come before all else, since every test rests on them. Noise and
    too few samples come next, then what the failed tests mean.

    >>> advise(["filling"])
    'Use the coordinates, they are right; but not every combination of them occurs.'
    """
    if known.columns:
        return known.columns
    names = set(failed)
    cause = _of_data(names, known, settings)
    # What noise or few samples may cause is no sign of anything else, and more samples are advised
    # once.
    if cause:
        names -= (UNSURE | {"samples"}) - ONE_FACTOR
    # Tests that fail for the same reason have the same advice.
    pieces = dict.fromkeys([*cause, *_of_tests(names, known, bool(cause))])
    return " ".join(list(pieces)[: settings.pieces])


def _of_data(failed: set[str], known: DataKnown, settings: AdviceSettings) -> list[str]:
    """What to do about noise, few samples and uneven ones, where tests show them."""
    advice = []
    if failed & UNSURE and known.noise > settings.noise:
        advice.append(_against_noise(known, settings))
    n = known.n_samples
    if failed & (UNSURE | {"samples"}) and n is not None and n < settings.few_samples:
        advice.append(
            f"Add samples: {n} are few, and {settings.few_samples} show most products "
            "of two curves."
        )
    if not advice and failed & UNCERTAIN and known.uneven:
        advice.append(UNEVEN)
    return advice


def _against_noise(known: DataKnown, settings: AdviceSettings) -> str:
    how = "average repeated measurements, or leave out noisy columns"
    if known.n_columns > settings.many_columns:
        how = "average neighbouring columns, as binning and smoothing do with pixels"
    return (
        f"Reduce the noise, which makes up {known.noise:.0%} of the variance that the "
        f"fit sees: {how}. More samples help, too."
    )


def _of_tests(failed: set[str], known: DataKnown, unsure: bool) -> list[str]:
    """What failed tests mean, the gravest first."""
    if _is_twisted(failed):
        if known.circles:
            # A twist reverses samples, but all lengths stay as they are.
            lengths = "modulation in data" in failed
            return [ADVICE["modulation"] if lengths else TWISTED]
        # Without a circle to follow, all that is left of a twist is that the whole of the samples
        # is no product.
        failed = failed - {"twist"} or {"product"}
    grave = failed - USABLE
    # Coordinates that may be wrong are none to use.
    shown = grave if grave or unsure else failed
    return [text for name, text in ADVICE.items() if name in shown]


def _is_twisted(failed: set[str]) -> bool:
    return "twist" in failed or {"completeness", "modulation"} <= failed
