"""How often results with given tests are right: the probability that a fit prints.

Every sense proposes its factors of every problem of a wide mixture; the tests of each proposal and
whether it is right are recorded.
"""

import time
import warnings
from collections.abc import Iterator
from functools import partial

import numpy as np

from manifactor.estimators import DiffusionMap
from manifactor.factoring.factorization import Factorization
from manifactor.factoring.factorize import SENSE_SEARCHES, divide_terms
from manifactor.factoring.methods import (
    attempt,
    density_of,
    find_in_more_functions,
    is_uneven,
    whole_factor,
)
from manifactor.scores import score
from manifactor.spectral.diffusion import Diffusion
from studies.mixture import Problem, draw


def record(seed: int, *, family: str | None = None) -> dict:
    """Return the proposals of all senses for a random problem, with their tests and scores.

    A product in the geometry is the only proposal, as in a fit.
    """
    problem = draw(seed, family=family)
    start = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):
        diffusion = DiffusionMap(n_functions=100, random_state=seed, n_jobs=1).fit(problem.X)
        found = diffusion.diffusion_
        proposals = [_proposal(each, problem) for each in _proposed(found, seed)]
    return {
        "seed": seed,
        "family": problem.family,
        "member": problem.member,
        "n": len(problem.X),
        "columns": problem.X.shape[1],
        "dimension": round(found.dimension, 3),
        "evenness": _rounded(density_of(found).spread),
        "true": [truth.shape[1] for truth in problem.truth],
        "proposals": proposals,
        "seconds": round(time.perf_counter() - start, 2),
    }


def _proposed(diffusion: Diffusion, seed: int) -> Iterator[Factorization]:
    """What each sense proposes, and what the geometry proposes of more functions."""
    geometry = None
    even = not is_uneven(density_of(diffusion))
    for sense, search in SENSE_SEARCHES.items():
        if sense == "density" and even:
            continue
        rng = np.random.default_rng(seed)
        options = {"grow": False} if sense == "geometry" else {}
        found, _ = attempt(partial(search.find, diffusion, None, rng=rng, **options))
        if found is None:
            continue
        yield divide_terms(found, None, rng=rng)
        if sense == "geometry":
            if found.evidence.verdict == "product":
                return
            geometry = found
    if geometry is not None:
        more = find_in_more_functions(geometry, None, rng=np.random.default_rng(seed))
        if more is not geometry:
            yield more


def _proposal(proposed: Factorization, problem: Problem) -> dict:
    evidence = proposed.evidence
    factors = proposed.factors or whole_factor(proposed.diffusion)
    result = score([factor.embedding for factor in factors], problem.truth)
    best = result.r2.argmax(axis=0)
    return {
        "sense": evidence.sense,
        "verdict": evidence.verdict,
        "functions": len(proposed.diffusion.distinct.eigenvalues),
        "topologies": [factor.topology for factor in factors],
        "dimensions": [factor.dimension for factor in factors],
        "confidences": [round(float(factor.confidence.mean()), 4) for factor in factors],
        "solved": result.solved,
        # A factor is right if it tells one true factor, and nothing of the others.
        "right": [
            bool(
                result.r2[true, j] >= 0.95 and np.delete(result.r2[:, j], true).max(initial=0) < 0.1
            )
            for j, true in enumerate(best)
        ],
        "worst": round(result.worst, 4),
        "leak": round(result.leak, 4),
        "leakage": _rounded(evidence.leakage),
        "null": _rounded(evidence.null),
        "tests": [
            [
                test.name,
                _rounded(test.value),
                _rounded(test.noise),
                _rounded(test.limit),
                test.passed,
            ]
            for test in evidence.tests
        ],
    }


def _rounded(values) -> float | list | None:
    """Numbers with six digits, None for nan, which is no JSON."""
    if np.ndim(values):
        return [_rounded(value) for value in values]
    return None if np.isnan(values) else float(f"{values:.6g}")
