"""What a run chose by itself, and why: rows of choice, value, reason."""

from collections.abc import Callable

from manifactor.cryoem.images import Components
from manifactor.estimators import ManifoldFactorizer
from manifactor.runs.task import FITTED, FITTED_IMAGES, PER_NEIGHBOR
from manifactor.spectral.diffusion import SAMPLES_PER_FUNCTION
from manifactor.spectral.neighbors import AUTO_NEIGHBORS, MANY
from manifactor.spectral.outliers import OutlierSettings
from manifactor.spectral.pipeline import AUTO_FUNCTIONS

Row = tuple[str, str, str]
SEARCHES = {
    "kd_tree": "exact; a tree is fastest in few dimensions",
    "brute": "exact; comparing all pairs is fastest in many dimensions",
    "faiss": f"approximate, as there are more than {MANY:,} samples; its recall is measured",
}


def choices(record: dict, fit: ManifoldFactorizer) -> list[Row]:
    """Every choice that a run made, its value, and the reason."""
    return [choice(record, fit) for choice in CHOICES]


def was_set(record: dict, fit: ManifoldFactorizer, name: str) -> bool:
    """Whether a setting was given and not left to the program."""
    usual = ManifoldFactorizer().get_params()[name]
    return record.get("arguments", {}).get(name, usual) != usual


def _of_images(record: dict) -> bool:
    return all(
        name in record.get("components", {})
        for name in Components.__dataclass_fields__
        if name != "samples"
    )


def _samples(record: dict, fit: ManifoldFactorizer) -> Row:
    fitted = len(fit.spectrum_.weights)
    total = record.get("n_samples", fitted)
    few = FITTED_IMAGES if _of_images(record) else FITTED
    if record.get("fit_samples", "auto") != "auto":
        why = "asked for"
    elif fitted < total:
        why = (
            "noise needs neighbourhoods wider than itself, so that few images with many neighbours tell more"
            if _of_images(record)
            else f"{FITTED:,} at most, so that a fit stays quick; the others are placed"
        )
    elif fitted > few:
        why = "this method places no others"
    else:
        why = f"there are no more than {few:,}"
    return (
        "samples fitted",
        "all" if fitted == total else f"{fitted:,} of {total:,}",
        why,
    )


def _preparation(record: dict, fit: ManifoldFactorizer) -> Row:
    if "components" in record:
        return (
            "preparation",
            "principal components",
            f"told from noise in the input itself: {record['components']['text']}",
        )
    if fit.preparation_ is not None:
        return (
            "preparation",
            f"{fit.preparation_.components.shape[1]} principal components",
            fit.preparation_.reason,
        )
    asked = was_set(record, fit, "preparation")
    return (
        "preparation",
        "none",
        "asked for"
        if asked
        else "no part of the columns was found to be isotropic Gaussian noise",
    )


def _outliers(record: dict, fit: ManifoldFactorizer) -> Row:
    why = f"left out: all their neighbours together weigh less than {OutlierSettings().least_company:g} in the kernel"
    count = int(fit.outliers_.sum())
    return "outliers", f"{count:,}", why if count else "every sample has company"


def _neighbours(record: dict, fit: ManifoldFactorizer) -> Row:
    if was_set(record, fit, "n_neighbors"):
        why = "asked for"
    elif _of_images(record) and fit.n_neighbors_ != AUTO_NEIGHBORS:
        why = f"a {PER_NEIGHBOR}th of the fitted images: noise needs neighbourhoods wider than itself"
    elif fit.n_neighbors_ == AUTO_NEIGHBORS:
        why = "the lowest functions were most accurate with 64 to 128 of them"
    else:
        why = "there are no more samples"
    return "neighbours", str(fit.n_neighbors_), why


def _search(record: dict, fit: ManifoldFactorizer) -> Row:
    why = (
        "asked for"
        if was_set(record, fit, "neighbors")
        else SEARCHES.get(fit.neighbors_, "fits the device")
    )
    return "neighbour search", str(fit.neighbors_), why


def _bandwidth(record: dict, fit: ManifoldFactorizer) -> Row:
    asked = fit.bandwidth != "local" and was_set(record, fit, "bandwidth")
    why = "asked for" if asked else fit.bandwidth_curve_.choice.why
    return "bandwidth", f"{fit.bandwidth_:.4g}", why


def _dimension(record: dict, fit: ManifoldFactorizer) -> Row:
    why = f"the curve says {fit.bandwidth_curve_.dimension:.2f}, corrected for the finite number of neighbours"
    return "dimension of the data", str(fit.dimension_), why


def _density(record: dict, fit: ManifoldFactorizer) -> Row:
    why = "functions of the manifold, however unevenly it was sampled"
    asked = was_set(record, fit, "density_correction")
    return (
        "density correction",
        f"{fit.density_correction:g}",
        "asked for" if asked else why,
    )


def _functions(record: dict, fit: ManifoldFactorizer) -> Row:
    if was_set(record, fit, "n_functions"):
        why = "asked for"
    elif fit.n_functions_ > AUTO_FUNCTIONS:
        why = "more than usual: the factors first found had fewer dimensions than the data"
    else:
        why = f"one for {SAMPLES_PER_FUNCTION} samples, {AUTO_FUNCTIONS} at most; more only where a dimension is missing"
    return "functions", str(fit.n_functions_), why


def _solver(record: dict, fit: ManifoldFactorizer) -> Row:
    why = "asked for" if was_set(record, fit, "solver") else fit.spectrum_.solver.why
    return "eigensolver", str(fit.solver_), why


def _method(record: dict, fit: ManifoldFactorizer) -> Row:
    asked = was_set(record, fit, "method")
    return (
        "method",
        str(fit.method),
        "asked for" if asked else "the default: it also finds the number of factors",
    )


def _factors(record: dict, fit: ManifoldFactorizer) -> Row:
    asked = was_set(record, fit, "n_factors")
    why = (
        "asked for"
        if asked
        else "so many blocks of functions have orthogonal gradients, beyond the samples' own noise"
    )
    if fit.method != "gradients" or fit.verdict_ == "none":
        why = "asked for" if asked else "found by the method"
    return "factors", str(fit.n_factors_), why


CHOICES: tuple[Callable[[dict, ManifoldFactorizer], Row], ...] = (
    _samples,
    _preparation,
    _outliers,
    _neighbours,
    _search,
    _bandwidth,
    _dimension,
    _density,
    _functions,
    _solver,
    _method,
    _factors,
)
