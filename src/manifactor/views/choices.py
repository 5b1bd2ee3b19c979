"""What a run chose by itself, and why, as rows of a table."""

from manifactor.estimators import ManifoldFactorizer


def choices(record: dict, fit: ManifoldFactorizer) -> list[tuple[str, str, str]]:
    """Return name, value and reason of every choice.

    A run's record has them all; a fit alone knows those of the factorizer.
    """
    recorded = record.get("choices")
    if recorded is not None:
        return [
            (name, str(choice["value"]), choice["why"])
            for name, choice in recorded.items()
        ]
    return [
        (name, str(choice.value), choice.why) for name, choice in fit.choices_.items()
    ]
