"""What to do next, from the tests that failed and from what is known of the data."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from manifactor.factoring.judging.criteria import CRITERIA, UNEVEN, Criterion
from manifactor.factoring.measures import NOT_MEASURED

# Fewer samples are few: a thousand show most products of two curves.
FEW_SAMPLES = 1000
# Answers of tests that say why there is one factor.
WHY_ONE = ("one factor", "no product")


@dataclass(frozen=True)
class DataKnown:
    """What is known of the data beside the tests, as far as advice depends on it."""

    n_samples: int | None = None  # distinct samples; None where it is not known
    n_columns: int = 0  # columns as given, before any preparation
    # Share of the variance of prepared samples that is noise; nan if not known
    noise: float = NOT_MEASURED
    uneven: bool = False  # whether the density varies so much that more samples may not help
    circles: bool = True  # whether a factor is a circle, which a twisted product needs
    # What to do about columns that are likely not measurements; "" if there are none
    columns: str = ""


def advise(failed: Iterable[str], known: DataKnown = DataKnown()) -> str:
    """Return what to do next, in sentences; "" where nothing follows.

    Columns that are not measurements come before all else, since every test rests on them. Noise
    and too few samples come next, then what the failed tests mean.

    >>> advise(["filling"])
    'Use the coordinates, they are right; but not every combination of them occurs.'
    """
    if known.columns:
        return known.columns
    tests = [CRITERIA[name] for name in set(failed) & set(CRITERIA)]
    cause = _of_data(tests, known)
    if cause:
        # What noise or few samples may cause is not a sign of anything else, and more samples are
        # advised once. Why there is one factor says what to do in any case.
        tests = [each for each in tests if each.robust or each.answer in WHY_ONE]
    # Tests that fail for the same reason have the same advice.
    pieces = dict.fromkeys([*cause, *_of_tests(tests, known, bool(cause))])
    # The first pieces of advice matter most, and more are not read.
    return " ".join([piece for piece in pieces if piece][:2])


def _of_data(failed: Sequence[Criterion], known: DataKnown) -> list[str]:
    """What to do about noise, few samples and uneven ones, where tests show them."""
    advice = []
    unsure = {each.name for each in failed if not each.robust}
    # A twentieth of the variance moves coordinates by a fifth of their standard deviation.
    if unsure - {"samples"} and known.noise > 0.05:
        advice.append(_against_noise(known))
    if unsure and known.n_samples is not None and known.n_samples < FEW_SAMPLES:
        advice.append(
            f"Add samples: {known.n_samples} are few, and {FEW_SAMPLES} show most products of two "
            "curves."
        )
    halves_differ = any(each.about == "halves" for each in failed)
    return advice or ([UNEVEN] if halves_differ and known.uneven else [])


def _against_noise(known: DataKnown) -> str:
    how = "average repeated measurements, or leave out noisy columns"
    # More columns are likely pixels or other neighbours of each other.
    if known.n_columns > 64:
        how = "average neighbouring columns, as binning and smoothing do with pixels"
    return (
        f"Reduce the noise, which makes up {known.noise:.0%} of the variance that the fit sees: "
        f"{how}. More samples help, too."
    )


def _of_tests(tests: Sequence[Criterion], known: DataKnown, unsure: bool) -> list[str]:
    """What failed tests mean, the gravest first."""
    failed = {each.name for each in tests}
    if "twist" in failed or {"completeness", "modulation"} <= failed:
        if known.circles:
            # A twist reverses samples, but all lengths stay as they are.
            lengths = "modulation in data" in failed
            return [CRITERIA["modulation" if lengths else "twist"].advice]
        # Without a circle to follow, a twist only means that the whole of the samples is not a
        # product.
        failed = failed - {"twist"} or {"product"}
    grave = {name for name in failed if CRITERIA[name].coordinates != "right"}
    # Coordinates that may be wrong are not to be used.
    shown = grave if grave or unsure else failed
    return [criterion.advice for name, criterion in CRITERIA.items() if name in shown]
