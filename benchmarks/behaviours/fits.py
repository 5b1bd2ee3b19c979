"""Fits in Python: every sense and method, samples of many kinds, and what follows."""

import tempfile
from functools import partial
from pathlib import Path

import dask.array as da
import numpy as np
from scipy.sparse import csr_array
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph

from manifactor import DiffusionMap, ManifoldFactorizer, datasets, load, save, scores

from behaviours.digest import Prose


def shape(name, n_samples, **how):
    """Return a function from a seed to samples of a built-in shape."""
    return lambda seed: datasets.sample(name, n_samples, random_state=seed, **how)[0]


def drawn(n_samples, make):
    """Return a function from a seed to samples that `make` draws."""
    return lambda seed: make(n_samples, np.random.default_rng(seed))


def ring(angle):
    return np.column_stack([np.cos(angle), np.sin(angle)])


def gaussian(n, rng):
    return rng.normal(size=(n, 2)) * [1, 3]


def beta(n, rng):
    return np.column_stack([1.6 * rng.beta(2, 5, n), rng.beta(2, 2, n)])


def exponential_map(n, rng):
    """A rectangle of the complex plane under exp: a product up to a stretch."""
    z = np.exp(rng.uniform(0, 1, n) + 1.6j * rng.uniform(size=n))
    return np.column_stack([z.real, z.imag])


def wells(n, rng):
    """A torus with three dense regions on each circle."""
    angles = rng.integers(3, size=(2, n)) * 2 * np.pi / 3 + 0.45 * rng.normal(size=(2, n))
    return np.hstack([ring(angles[0]), 0.7 * ring(angles[1])])


def bent_square_and_circle(n, rng):
    """A sum of two terms; the first one, a surface, is a product of lengths itself."""
    x, y = rng.uniform(-1, 1, size=(2, n))
    circle = 0.8 * ring(rng.uniform(0, 2 * np.pi, size=n))
    X = np.column_stack([1.4 * x, y, 0.5 * x * y, 0.3 * x**2 * y, circle])
    return X + 0.03 * rng.normal(size=X.shape)


def turning_objects(n, rng, dimmer=0.45):
    """Images of two objects that turn, the second one dimmer than the first."""
    axis = np.linspace(-1, 1, 20)
    pixels = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 1, 2)
    images = 0
    for centre, weight in ((-0.5, 1.0), (0.5, dimmer)):
        angle = rng.uniform(0, 2 * np.pi, n)
        for radius, ahead, bright in ((0.38, 0, 1.0), (0.28, 2, 0.7), (0.2, 4, 0.5)):
            spot = radius * ring(angle + ahead) + [centre, 0]
            squared = ((pixels - spot) ** 2).sum(axis=-1)
            images = images + weight * bright * np.exp(-squared / 0.04).T
    return images


def clusters(n, rng):
    return rng.normal(size=(n, 3)) + 30 * (np.arange(n) % 2)[:, None]


def line(n, rng):
    return np.outer(rng.uniform(size=n), [1, 2, 0.5]) + 0.001 * rng.normal(size=(n, 3))


def found(fit) -> dict:
    """Return what a fit knows of its own samples."""
    evidence = fit.evidence_
    numbers = [[test.value, test.noise, test.limit] for test in evidence.tests]
    factors = {}
    for number, factor in enumerate(fit.factors_, start=1):
        factors[number] = {
            "embedding": factor.embedding,
            "confidence": factor.confidence,
            "eigenvalues": factor.eigenvalues,
            "functions": np.abs(factor.functions),  # eigenvectors have no sign
            "has coordinate": factor.coordinate is not None,
        }
    return {
        "verdict": fit.verdict_,
        "answer": evidence.answer,
        "sense": evidence.sense,
        "n_factors": fit.n_factors_,
        "topologies": [factor.topology for factor in fit.factors_],
        "dimensions": [int(factor.dimension) for factor in fit.factors_],
        "terms": evidence.terms,
        "tests": [[test.name, bool(test.passed)] for test in evidence.tests],
        "values, noise, limits": np.array(numbers, dtype=float),
        "leakage": np.asarray(evidence.leakage),
        "null": float(evidence.null),
        "dependence": float(evidence.dependence),
        "evidence": Prose(evidence),
        "factor": factors,
        "coordinates": fit.coordinates(),
        "columns": list(fit.get_feature_names_out()),
        "tried": tried(fit.candidates_),
        **diffused(fit),
    }


def tried(results) -> dict:
    """Return what was tried, in its order, with the values that were measured."""
    return {
        f"{number} {each.model}": {
            "n_factors": each.n_factors,
            "probability": float(each.probability),
            "names": list(each.measured),
            "values": np.array(list(each.measured.values()), dtype=float),
        }
        for number, each in enumerate(results, start=1)
    }


def diffused(fit) -> dict:
    """Return what both estimators know of the diffusion."""
    plain = (str, int, float, np.generic, type(None))
    chosen = {
        name: choice.value if isinstance(choice.value, plain) else str(choice.value)
        for name, choice in fit.choices_.items()
    }
    return {
        "eigenvalues": fit.spectrum_.eigenvalues,
        "functions": np.abs(fit.spectrum_.functions),
        "bandwidth": float(fit.bandwidth_),
        "dimension": fit.dimension_,
        "outliers": fit.outliers_,
        "choices": chosen,
        "why": [Prose(choice.why) for choice in fit.choices_.values()],
        "stages": list(fit.timings_),
    }


def placed(fit, X) -> dict:
    """Return where a fit places new samples, and the samples that it returns."""
    located = fit.locate(X)
    embeddings = fit.transform(X)
    ordered = [f.coordinate is not None for f in fit.factors_]
    frames = fit.along(ordered.index(True), 5) if any(ordered) else None
    return {
        "transform": embeddings,
        "coordinates": fit.coordinates(X),
        "confidence": np.column_stack([each.confidence for each in located]),
        "inverse": fit.inverse_transform(embeddings[:20]),
        "along": frames,
    }


def fitted(samples, *, known=None, **parameters) -> dict:
    """Fit samples, and place others on the factors."""
    fit = ManifoldFactorizer(random_state=0, n_jobs=1, **parameters)
    fit.fit(samples(1), **(known or {}))
    return {**found(fit), "new": placed(fit, samples(2)[:60])}


def fit(samples, **parameters):
    return partial(fitted, samples, **parameters)


def moving(kind, n=600, **how):
    """Fit samples of a bent strip whose moves are known, and place others on the factors."""
    latents, moved, times = walked(kind, n)
    X = strip(latents)
    if kind == "metric":
        given = {"metric": strip_jacobian(latents)}
    elif kind == "bursts":
        given = {"bursts": np.stack([strip(each) for each in moved], axis=1)}
    elif kind == "pairs":
        given = {"pairs": strip(moved[0]), "lag": 0.5}
    else:
        given = {"times": times} if kind == "times" else {"trajectories": True}
    samples = [X[: n // 2], X[n // 2 :]] if kind == "trajectories" else X
    made = ManifoldFactorizer(random_state=0, n_jobs=1, **how).fit(samples, **given)
    return {**found(made), "rows": made.rows_, "new": placed(made, X[:60])}


def squares(seed):
    """Squares of twelve columns of a torus, which only their square roots show."""
    X = shape("torus", 500)(seed)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(12, 12)))[0][: X.shape[1]]
    return (3 + 2 * X @ turn) ** 2


def walked(kind, n):
    """Return places on a rectangle, where each of them moves to, and times."""
    rng = np.random.default_rng(1)
    size = 0.2 if kind == "pairs" else 0.03
    if kind in ("times", "trajectories"):
        steps = 0.08 * rng.normal(size=(n, 2))
        return folded(np.cumsum(steps, axis=0) + 0.5), None, 0.1 * np.arange(n)
    latents = rng.uniform(size=(n, 2)) * [1.0, 0.7]
    moves = size * rng.normal(size=(12, n, 2))
    return latents, [folded(latents + move) for move in moves], None


def folded(places):
    """Places reflected at the edges of a rectangle."""
    sides = np.array([1.0, 0.7])
    return sides - np.abs(np.mod(places, 2 * sides) - sides)


def strip(places):
    """A rectangle bent so that lengths are not kept."""
    x, y = places.T
    return np.column_stack(
        [np.exp(0.5 * x) * np.cos(2 * y), np.exp(0.5 * x) * np.sin(2 * y), x * y]
    )


def strip_jacobian(places):
    """Jacobians of `strip`, (n, 3, 2)."""
    x, y = places.T
    grow, cos, sin = np.exp(0.5 * x), np.cos(2 * y), np.sin(2 * y)
    along_x = np.column_stack([0.5 * grow * cos, 0.5 * grow * sin, y])
    along_y = np.column_stack([-2 * grow * sin, 2 * grow * cos, x])
    return np.stack([along_x, along_y], axis=-1)


def noisy_rings(seed):
    return shape("torus", 500, noise=0.05)(seed)


def precomputed():
    """Distances instead of samples: nothing new can be placed without them."""
    X = shape("torus", 600)(1)
    graph = kneighbors_graph(X, 64, mode="distance")
    fit = ManifoldFactorizer(neighbors="precomputed", random_state=0, n_jobs=1)
    fit.fit(graph)
    places = fit.transform(graph[:20])
    back = fit.inverse_transform(places, values=X)
    return {**found(fit), "places": places, "back": back}


def lazy():
    """Of an array that is not in memory, some rows are read; all can be placed."""
    X = da.from_array(shape("cylinder", 800)(1), chunks=(300, 3))
    fit = ManifoldFactorizer(random_state=0, n_jobs=1).fit(X, fit_samples=400)
    places = {k: p.embedding.compute() for k, p in enumerate(fit.locate(X), start=1)}
    return {**found(fit), "rows": fit.rows_, "places": places}


def archive():
    """A fit that was saved and loaded is the same."""
    X, new = shape("cylinder", 600)(1), shape("cylinder", 60)(2)
    fit = ManifoldFactorizer(random_state=0, n_jobs=1).fit(X)
    with tempfile.TemporaryDirectory() as folder:
        save(fit, Path(folder) / "fit.npz")
        loaded = load(Path(folder) / "fit.npz")
    parameters = {name: str(value) for name, value in loaded.get_params().items()}
    return {**found(loaded), "new": placed(loaded, new), "parameters": parameters}


def refitted():
    """The same estimator with other parameters, and other samples after that."""
    fit = ManifoldFactorizer(random_state=0, n_jobs=1).fit(shape("torus", 500)(1))
    second = found(fit.set_params(n_functions=30).fit(shape("torus", 500)(1)))
    return {"functions": second, "samples": found(fit.fit(shape("square", 400)(1)))}


def diffusion_map(samples, **parameters):
    """The diffusion alone."""
    fit = DiffusionMap(random_state=0, n_jobs=1, **parameters).fit(samples(1))
    new = np.abs(fit.transform(samples(2)[:60]))
    residuals = bool((fit.spectrum_.residuals < 1e-6).all())
    return {**diffused(fit), "new": new, "residuals are small": residuals}


def scored():
    """Scores of a fit, and of coordinates that are not those of a fit."""
    X, truth = datasets.sample("cylinder", 600, random_state=1)
    fit = ManifoldFactorizer(random_state=0, n_jobs=1).fit(X)
    score = scores.score([factor.embedding for factor in fit.factors_], truth)
    a, b = np.random.default_rng(0).uniform(size=(2, 300, 1))
    return {
        "solved": score.solved,
        "number": score.number_right,
        "r2": score.r2,
        "match": score.match,
        "worst, leak": [score.worst, score.leak],
        "regression": float(scores.regression_r2(a, a**2 + 0.1 * b)),
        "correlation": float(scores.coordinate_correlation(a[:, 0], a**2)),
        "interval": [float(end) for end in scores.wilson_interval(9, 10)],
    }


def sampled():
    """Samples and truth of built-in shapes, an exact spectrum, and images."""
    names = ["torus", "cube", "swiss_roll", "klein_bottle", "turning_objects"]
    drawn = {name: datasets.sample(name, 40, random_state=3) for name in names}
    small = {"size": 54, "pixel_size": 4.0}
    images = datasets.simulate_particles(8, random_state=0, **small).images
    return {
        "samples": {name: X for name, (X, _) in drawn.items()},
        "truth": {name: np.hstack(truth) for name, (_, truth) in drawn.items()},
        "eigenvalues": datasets.exact_eigenvalues("torus", 20),
        "images": np.asarray(images),
    }


def refusals():
    """Which errors wrong parameters and samples give."""
    X = shape("square", 200)(1)
    holes = np.where(np.arange(len(X))[:, None] == 7, np.nan, X)
    attempts = {
        "no factor": (X, {"n_factors": 0}),
        "unknown method": (X, {"method": "guess"}),
        "unknown sense": (X, {"sense": "humour"}),
        "unknown solver": (X, {"solver": "slow"}),
        "too many functions": (X, {"n_functions": 200}),
        "negative bandwidth": (X, {"bandwidth": -1}),
        "functions of a sum": (X, {"method": "sum", "n_functions": 9}),
        "factors of triplets": (X, {"method": "triplets"}),
        "too many factors": (X, {"n_factors": 5}),
        "a hole": (holes, {}),
        "text": (X.astype(str)[:, :0], {}),
        "one sample": (X[:1], {}),
        "a sparse matrix": (csr_array(X), {}),
        "equal samples": (np.ones((50, 3)), {}),
    }
    raised = {}
    for name, (samples, parameters) in attempts.items():
        try:
            ManifoldFactorizer(random_state=0, n_jobs=1, **parameters).fit(samples)
            raised[name] = {"error": None}
        except (ValueError, TypeError, RuntimeError) as error:
            raised[name] = {"error": type(error).__name__, "said": Prose(error)}
    return raised


torus = shape("torus", 700)
objects = drawn(500, turning_objects)
FITS = {
    # What is found with nothing set by hand
    "rectangle": fit(shape("rectangle", 800)),
    "torus": fit(shape("torus", 1200)),
    "equal torus": fit(shape("equal_torus", 700)),
    "cube": fit(shape("cube", 1000)),
    "cylinder": fit(shape("cylinder", 700)),
    "sphere and interval": fit(shape("sphere_interval", 900)),
    "two spheres": fit(shape("sphere_sphere", 800)),
    "robot arm": fit(shape("robot_arm", 800)),
    "swiss roll": fit(shape("swiss_roll", 800)),
    "warped cylinder": fit(shape("warped_cylinder", 800)),
    "strip": fit(shape("strip5", 600)),
    "objects": fit(objects),
    "exponential map": fit(drawn(1000, exponential_map)),
    "wells": fit(drawn(900, wells)),
    "gaussian": fit(drawn(800, gaussian)),
    # No product, for several reasons
    "sphere": fit(shape("sphere", 600)),
    "disk": fit(shape("disk", 600)),
    "moebius": fit(shape("moebius", 700)),
    "klein bottle": fit(shape("klein_bottle", 700)),
    "parallelogram": fit(shape("parallelogram", 600)),
    "triangle": fit(shape("triangle", 500)),
    "blob": fit(drawn(500, lambda n, rng: rng.normal(size=(n, 3)))),
    "clusters": fit(drawn(500, clusters)),
    "line": fit(drawn(300, line)),
    "noise": fit(drawn(200, lambda n, rng: rng.normal(size=(n, 30)))),
    "few samples": fit(shape("torus", 60)),
    # A sense, a method or a number is given
    "torus in the geometry": fit(torus, sense="geometry"),
    "torus as a sum": fit(torus, sense="sum"),
    "torus in the volume": fit(torus, sense="volume"),
    "torus in the density": fit(torus, sense="density"),
    "beta in the density": fit(drawn(2000, beta), sense="density"),
    "objects in the geometry": fit(objects, sense="geometry"),
    "divided term": fit(
        drawn(1000, bent_square_and_circle), sense="sum", known={"noise": np.full(6, 0.03)}
    ),
    "torus by triplets": fit(torus, method="triplets", n_factors=2),
    "rectangle by triplets": fit(
        shape("rectangle", 700),
        method="triplets",
        n_factors=2,
        eigenvalue_tolerance=1.0,
        similarity_threshold=0.6,
        exclude=(2,),
    ),
    "objects by sum": fit(objects, method="sum"),
    "objects by deflation": fit(objects, method="deflation"),
    "one factor of a torus": fit(torus, n_factors=1),
    "two factors of a torus": fit(torus, n_factors=2),
    "two factors of a cube": fit(shape("cube", 900), n_factors=2),
    "three factors of a cube": fit(shape("cube", 900), n_factors=3),
    "two factors of objects": fit(objects, n_factors=2),
    "three factors of a torus": fit(torus, n_factors=3),
    # Samples of other kinds
    "weighted": fit(shape("rectangle", 800, sampling="weighted")),
    "dependent": fit(shape("cylinder", 800, sampling="dependent")),
    "copies": fit(shape("torus", 700, sampling="duplicates")),
    "outliers": fit(shape("cylinder", 700, sampling="outliers")),
    "noise in 20 columns": fit(shape("rectangle", 1000, noise=0.02, ambient_dimension=20)),
    "wide": fit(shape("torus", 400, noise=0.01, ambient_dimension=600)),
    "known noise": fit(shape("cylinder", 700, noise=0.05), known={"noise": np.full(3, 0.05)}),
    "noise of each sample": fit(
        noisy_rings, known={"noise": np.repeat(0.0025 * np.eye(4)[None], 500, axis=0)}
    ),
    "moves as a metric": partial(moving, "metric"),
    "moves in bursts": partial(moving, "bursts"),
    "moves as pairs": partial(moving, "pairs", 4000),
    "moves in time": partial(moving, "times", 2500),
    "moves of two trajectories": partial(moving, "trajectories", 2500),
    "squares": fit(squares),
    "float32": fit(lambda seed: shape("torus", 600)(seed).astype(np.float32)),
    "precomputed": precomputed,
    "lazy": lazy,
    # How the diffusion is computed
    "chebyshev": fit(shape("torus", 1800), solver="chebyshev"),
    "arpack": fit(torus, solver="arpack", n_functions=40),
    "dense kernel": fit(shape("square", 500), n_neighbors="all"),
    "few neighbours": fit(torus, n_neighbors=24, neighbors="brute"),
    "own neighbours": fit(torus, neighbors=KNeighborsTransformer(n_neighbors=50)),
    "local bandwidth": fit(torus, bandwidth="local"),
    "given bandwidth": fit(torus, bandwidth=0.8, density_correction=0.5),
    "unprepared": fit(shape("cylinder", 600, noise=0.02, ambient_dimension=12), preparation="none"),
    "diffusion map": partial(diffusion_map, torus),
    "uncorrected map": partial(
        diffusion_map, shape("disk", 500), density_correction=0.0, n_functions=20
    ),
    # What follows a fit
    "archive": archive,
    "refitted": refitted,
    "scores": scored,
    "data sets": sampled,
    "refusals": refusals,
}
