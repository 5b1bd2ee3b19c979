"""Keys of the stages of `diffuse`: fingerprints of all that a stage depends on."""

from typing import Any
from uuid import uuid4

from manifactor._support.stages import Stages, fingerprint
from manifactor.spectral.settings import DiffusionSettings, number_of_neighbors


def stage_keys(X, settings: DiffusionSettings, stages: Stages) -> dict[str, str]:
    """Return the key of every stage: a fingerprint of all that it depends on."""
    preparation = fingerprint(
        X, settings.precomputed, settings.own_search, settings.preparation, settings.preparing
    )
    neighbours = fingerprint(
        preparation,
        number_of_neighbors(settings, X.shape[0]).value,
        _search_key(settings.neighbors),
        settings.device,
        settings.searching,
    )
    # The number of functions both as asked for and as chosen: "auto" is settled only when copies
    # are known.
    spectrum = stages.random_key(
        neighbours,
        settings.bandwidth,
        settings.density_correction,
        settings.n_functions,
        settings.solver,
        settings.counts,
        settings.kernel,
        settings.outliers,
        settings.parts,
        settings.spectrum,
    )
    return {"preparation": preparation, "neighbours": neighbours, "spectrum": spectrum}


def _search_key(search: Any) -> str:
    """Return a key of a search: its parameters; a new one where those are unknown."""
    if isinstance(search, str):
        return search
    if hasattr(search, "get_params"):
        return f"{type(search).__qualname__} {search.get_params()}"
    return uuid4().hex
