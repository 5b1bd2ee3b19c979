"""Particles of all views: read once, factored, placed, and written as a run folder."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import eigh, null_space, orth
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

from manifactor._support.errors import NothingFoundError, Warned, shell_line, warn_all
from manifactor._support.files import real_path
from manifactor._support.memory import available_memory
from manifactor._support.parameters import Choice, choices_as_json
from manifactor._support.stages import Stages
from manifactor._support.threads import cores
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.model import UNKNOWN, MotionModel, motion_records, view_map
from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.placing import PlacedParticles, even_places, place_particles
from manifactor.cryoem.all_views.principal import (
    IMAGES_COMPARED,
    PrincipalVolumes,
    least_agreement,
    principal_volumes,
)
from manifactor.cryoem.all_views.shapes import find_shapes
from manifactor.cryoem.all_views.transforms import (
    Transforms,
    VolumeGrid,
    point_group,
    read_transforms,
    transform_grid,
)
from manifactor.cryoem.all_views.volumes import MODEL_FILE
from manifactor.cryoem.confounders import confounder_records
from manifactor.cryoem.directions import is_one_view
from manifactor.cryoem.files.formats import ParticleChoice
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import ImageSource
from manifactor.cryoem.runs import particle_file
from manifactor.estimators import ManifoldFactorizer
from manifactor.estimators.factorizer import fit_quietly
from manifactor.judging.evidence import listed, numeral, shapes_in_words
from manifactor.judging.measures.density import arc_of_function, cluster_labels
from manifactor.operators.engines.gpu import device_memory, require_device
from manifactor.runs.cost import Cost
from manifactor.runs.folder import InputState, warn_of_changes, write_run
from manifactor.runs.landscape import LEVELS
from manifactor.runs.options import OF_PARTICLES, FitOptions
from manifactor.runs.places import Place, all_places
from manifactor.runs.run import members, open_run
from manifactor.runs.task import Task
from manifactor.samples.likelihood import Density, GaussianLikelihood

# Particles that are factored, at most.
MOST_FACTORED = 6000


@dataclass(frozen=True)
class AllViews:
    """What was found in images of all views."""

    fit: ManifoldFactorizer  # fitted to the principal coordinates of some particles
    rows: np.ndarray  # these particles
    principal: PrincipalVolumes
    samples: np.ndarray  # (n, rank): coordinates of all particles without their noise
    # All particles on the motions; None if a factor is neither an interval nor a circle
    placed: PlacedParticles | None
    # (n,): the cluster of each particle, from 1, the largest first; None if there are none
    clusters: np.ndarray | None = None
    inside: str = ""  # what the largest cluster is, such as "a circle"; "" for a single state
    dropped: int = 0  # factors that no image shows, and that were left out

    @property
    def headline(self) -> str:
        """The verdict in words, such as "one motion, a circle" or "two states"."""
        if self.clusters is not None:
            count = int(self.clusters.max())
            if not self.inside:
                return f"{numeral(count)} states"
            which = "larger" if count == 2 else "largest"
            return f"{numeral(count)} classes; {self.inside} in the {which}"
        factors, shapes = self.fit.factors_, shapes_in_words(self.fit.evidence_.shapes)
        if len(factors) > 1:
            return f"{numeral(len(factors))} motions: {shapes}"
        if factors[0].topology in LEVELS:
            return f"one motion, {shapes}"
        return f"motions that were not told apart: {shapes}"


def factor_all_views(
    transforms: Transforms,
    parameters: Mapping | None = None,
    *,
    seed: int = 0,
    stages: Stages | None = None,
    workers: Workers = Here(),
) -> AllViews:
    """Find the independent motions of a molecule, and place all particles on them."""
    stages = stages or Stages()
    how: dict = {"seed": seed, "stages": stages, "workers": workers}
    principal = principal_volumes(transforms, **how)
    if not principal.rank:
        raise ValueError(f"the verdict is {_too_weak(principal, len(transforms))}")
    # The surest coordinates are factored, whose views show all motions. The others are placed.
    variance = np.einsum("nii,i->n", principal.covariance, principal.information)
    count = min(max(int(0.4 * len(variance)), 500), MOST_FACTORED, len(variance))
    rows = np.sort(np.argpartition(variance, count - 1)[:count])
    # A few thousand samples are factored as fast here as on a device.
    own = {"preparation": "none", "random_state": seed, "callback": stages.report, "device": "cpu"}
    factorizer = ManifoldFactorizer(**{**(parameters or {}), **own})
    found = _factor(principal, rows, factorizer, np.random.default_rng(seed))
    samples = found.fit.diffusion_.samples
    for _ in range(4):
        factors = found.fit.factors_
        topologies = tuple(factor.topology for factor in factors)
        if found.clusters is not None or not set(topologies) <= set(LEVELS):
            return found
        known = np.column_stack([even_places(factor.coordinate) for factor in factors])
        placed = place_particles(transforms, Motions(topologies), rows, known, **how)
        # The surest places on a factor that no image shows are as good as drawn at random.
        shown = np.quantile(placed.deviations, 0.01, axis=0) < 0.95 * UNKNOWN
        if shown.all():
            return replace(found, placed=placed)
        if not shown.any():
            break
        # What no image shows is averaged over, and the rest judged again.
        functions = [factors[k].functions[:, :8] for k in np.flatnonzero(shown)]
        waves = np.hstack([np.ones((len(rows), 1)), *functions])
        samples = waves @ np.linalg.lstsq(waves, samples, rcond=None)[0]
        fit = clone(factorizer)
        if fit.n_factors != "auto":
            fit.set_params(n_factors=int(shown.sum()))
        dropped = found.dropped + int((~shown).sum())
        found = replace(found, fit=fit.fit(samples), dropped=dropped)
    raise ValueError(
        "the verdict is rigid, or a motion below the noise: no image tells its particle's place. "
        "Add images, or check poses and pixel size."
    )


def _too_weak(principal: PrincipalVolumes, n_images: int) -> str:
    """Return why no motion is seen, and how many images would do."""
    highest, chance = principal.agreement.max(), principal.chance
    said = (
        "rigid, or a motion below the noise: volumes from two half sets of the images "
        f"have a correlation of {highest:.2f} beside their mean, and of {chance:.2f} by chance."
    )
    if highest < 1.3 * chance:
        return f"{said} Add images if a motion is expected, or check poses and pixel size."
    # Signal over noise of a volume grows with the number of images.
    needed = least_agreement(chance)
    more = needed / (1 - needed) / (highest / (1 - highest))
    wanted = float(f"{n_images * max(more, 1.5):.2g}")
    needs = f"about {wanted:,.0f} images would do."
    if wanted > IMAGES_COMPARED:
        needs = f"it is too weak: {IMAGES_COMPARED:,} images are compared."
    return f"{said} If that is a motion, {needs}"


def _factor(
    principal: PrincipalVolumes,
    rows: np.ndarray,
    factorizer: ManifoldFactorizer,
    rng: np.random.Generator,
) -> AllViews:
    """Return the factors of some particles' coordinates without noise, and clusters of all."""
    seen, scale = principal.likelihood, np.sqrt(principal.information)
    where = Density.of(seen, principal.coordinates, rng=rng).means(seen)
    fit, warned = fit_quietly(factorizer, where[rows] * scale)
    numbers, inside = clusters_of(fit, rows, where), ""
    if numbers is None:
        fit, more = _with_shape(seen, principal.coordinates, rows, fit, scale, rng)
        warn_all((*warned, *more))
    else:
        # What is said of clusters takes the place of warnings of them.
        own = np.flatnonzero(numbers == 1)
        centres = [where[numbers == number].mean(axis=0) for number in np.unique(numbers)]
        if is_moving(seen[own], np.diff(centres, axis=0)):
            among = np.sort(rng.permutation(len(own))[:MOST_FACTORED])
            of_one, _ = fit_quietly(factorizer, where[own][among] * scale)
            coordinates = principal.coordinates[own]
            of_one, _ = _with_shape(seen[own], coordinates, among, of_one, scale, rng)
            inside = shapes_in_words(of_one.evidence_.shapes)
    return AllViews(fit, rows, principal, where * scale, None, numbers, inside)


def _with_shape(
    seen: GaussianLikelihood,
    coordinates: np.ndarray,
    rows: np.ndarray,
    fit: ManifoldFactorizer,
    scale: np.ndarray,
    rng: np.random.Generator,
) -> tuple[ManifoldFactorizer, list[Warned]]:
    """Return the fit to coordinates on motions that it shows, too; as it is without any.

    Also the warnings of all that was tried.
    """
    warned: list[Warned] = []
    for shape in find_shapes(seen, coordinates, rows, fit, scale, rng=rng):
        samples, wanted = shape.coordinates(seen[rows]) * scale, sorted(shape.motions.topologies)
        for asked in dict.fromkeys([fit.n_factors, len(wanted)]):
            try:
                found, more = fit_quietly(clone(fit).set_params(n_factors=asked), samples)
            except NothingFoundError as error:
                warned += error.warned
                continue
            warned += more
            if sorted(factor.topology for factor in found.factors_) == wanted:
                return found, warned
    return fit, warned


def clusters_of(fit: ManifoldFactorizer, rows: np.ndarray, where: np.ndarray) -> np.ndarray | None:
    """Return the cluster of each row of `where`, from 1, the largest first; None if there is one.

    Clusters lie along a low function of a single factor, or along an interval of several.
    """
    along = [arc_of_function(function) for function in fit.factors_[0].functions[:, :3].T]
    if len(fit.factors_) > 1:
        along = [each.coordinate for each in fit.factors_ if each.topology == "interval"]
    labels = max(map(cluster_labels, along), key=np.max, default=np.zeros(1))
    if not labels.max():
        return None
    known = labels >= 0
    nearest = KNeighborsClassifier(15).fit(where[rows[known]], labels[known])
    found = nearest.predict(where)
    return 1 + np.argsort(np.argsort(-np.bincount(found), kind="stable"))[found]


def is_moving(seen: GaussianLikelihood, apart: np.ndarray) -> bool:
    """Return whether particles of one cluster differ by more than noise.

    The lines between clusters, `apart` (n_lines, rank), do not count: errors of the volumes spread
    each cluster there.
    """
    across = null_space(apart)
    if not across.shape[1]:
        return False
    seen = seen.marginal(across.T, orth(apart.T).T)
    count, total = across.shape[1], seen.precision.sum(axis=0)
    # Sums over images: their variance is the information, and what the states add to it.
    rest = seen.linear - seen.precision @ np.linalg.solve(total, seen.linear.sum(axis=0))
    products = np.einsum("nij,nkl->iljk", seen.precision, seen.precision)
    spread = np.linalg.solve(
        products.reshape(count**2, count**2), (rest.T @ rest - total).ravel()
    ).reshape(count, count)
    mean = total / len(seen)
    # Signal to noise of coordinates.
    ratio = eigh(mean @ spread @ mean, mean, eigvals_only=True)
    return bool((ratio > 0.5).any())


def read_all_views(task: Task) -> tuple[Particles, ImageSource, VolumeGrid]:
    """Return particles of all views, their images, which are not read yet, and their grid."""
    options, choice = task.options, ParticleChoice.of(task.options)
    point_group(options.symmetry)
    if options.device != "cpu":
        require_device(options.device)
    particles = choice.chosen(choice.read(task.path))
    if options.cluster_of is not None:
        run = open_run(options.cluster_of)
        if real_path(run.particles.path) != real_path(particles.path):
            raise ValueError(
                f"--cluster-of must be a run of {particles.path}; {options.cluster_of} is of "
                f"{run.particles.path}."
            )
        own = run.rows[members(run, options.which)]
        particles = particles[np.isin(particles.rows, own)]
    source = choice.images(particles)
    grid = transform_grid(source, particles, **options.values("low_pass", "mask_radius"))
    if is_one_view(particles):
        raise ValueError(
            "particles of all views must be seen from many directions; those of "
            f"{task.path} are seen from one. Leave --all-views out."
        )
    return particles, source, grid


# Memory, before any image is read.


def cost_of_all_views(task: Task, source: ImageSource, *, n_workers: int) -> Cost:
    """Return what the fit costs; refuse more than the machine's memory."""
    n_mates, on_device = len(point_group(task.options.symmetry)), task.options.device != "cpu"
    cost = forecast_all_views(
        len(source), n_mates=n_mates, n_workers=n_workers, on_device=on_device
    )
    if not cost.fits:
        raise MemoryError(
            f"the fit must fit into memory; {len(source)} particles need {cost}, "
            f"and this machine can give {available_memory() / 1e9:.1f} GB. Give "
            "fewer particles, such as those of one --class or --optics-group."
        )
    return cost


def forecast_all_views(
    n_images: int, *, n_mates: int = 1, n_workers: int = 1, on_device: bool = False
) -> Cost:
    """Return the memory of a fit of all views, as measured with 3,000 to 100,000 images."""
    # Few images show few terms, of which there are few volumes and products.
    n_shown = n_images * n_mates
    terms = min(1.0, n_shown / 4000)
    # An image takes 4000 bytes: its coefficients, the covariance of its coordinates, its line of
    # text. Volumes, a block of images, and the sums of each thread are held beside them, and what
    # torch needs to use a GPU.
    start = 4e8 + 2e8 * terms + 1.5e9 * on_device
    threads = 1 if on_device else min(max(1, cores() // n_workers), 8)
    # Images that volumes are learned from have the products of their features, too.
    images = 4000 * n_images + 12_000 * min(30_000, n_shown)
    here, there = start + 4000 * n_images, start + 2.2e8 * terms * threads + images / n_workers
    device = 3e9 * on_device
    return (
        Cost(max(here, there), device) if n_workers == 1 else Cost(here, device, n_workers, there)
    )


def fit_all_views(
    task: Task,
    particles: Particles,
    source: ImageSource,
    grid: VolumeGrid,
    out: Path,
    *,
    overwrite: bool = False,
    stages: Stages | None = None,
    workers: Workers = Here(),
) -> tuple[ManifoldFactorizer, dict]:
    """Find the motions and write the run folder."""
    before, options, stages = InputState([task.path]), task.options, stages or Stages()
    how: dict[str, Any] = {"stages": stages, "workers": workers}
    rng = np.random.default_rng(options.seed)
    transforms = read_transforms(source, particles, grid, rng=rng, **how)
    transforms = replace(transforms, symmetry=options.symmetry, device=options.device)
    with device_memory("4,096 images and volumes, about 3 GB,", "or use --device cpu"):
        found = factor_all_views(transforms, options.parameters, seed=options.seed, **how)
    places = places_of(found)
    record = {**_record(task, particles, transforms, found, places), **before.record}
    details = record["all_views"]
    details |= {"seconds": stages.timings, **_verdict(found, options, task.path, out)}
    trees = {}
    if found.placed is not None:
        views = view_map(transforms.rotations, found.placed.deviations)
        details["motions"] = motion_records(views, places)
        trees[MODEL_FILE] = MotionModel(
            grid=transforms.grid,
            box=transforms.box,
            size=transforms.size,
            motions=found.placed.motions,
            volumes=found.placed.volumes.astype(np.complex64),
            views=views,
            consistency=found.placed.consistency,
        )
    warn_of_changes(before)
    write_run(
        found.fit,
        out,
        record=record,
        places=places,
        rows=particles.rows,
        clusters=found.clusters,
        files=particle_file(particles, places, before.changed),
        trees=trees,
        overwrite=overwrite,
    )
    return found.fit, record


def _verdict(found: AllViews, options: FitOptions, path: Path, out: Path) -> dict:
    """Return the verdict in words, and what to do about clusters, as run.json has it."""
    if found.clusters is None:
        return {"headline": found.headline}
    counts, run = np.bincount(found.clusters)[1:], out.absolute()
    shares = listed(f"{share:.0f} %" for share in 100 * counts / counts.sum())
    # A state is selected, a class is fitted by itself.
    words, out = ["select", str(run), "--cluster", "1"], Path(f"state1{path.suffix}")
    if found.inside:
        alone = replace(options, cluster_of=str(run))
        words, out = alone.arguments([path]), Path(f"{run}-cluster1")
    advice = f"Run {shell_line('manifactor', *words, '--out', out)}"
    said = f"The particles fall into {len(counts)} clusters, with {shares} of them."
    return {"headline": found.headline, "found": said, "advice": advice}


def _record(
    task: Task,
    particles: Particles,
    transforms: Transforms,
    found: AllViews,
    places: tuple[Place, ...],
) -> dict:
    options, path = task.options, str(task.path.resolve())
    rng = np.random.default_rng(options.seed)
    shares = [] if found.placed is None else found.placed.consistency.tolist()
    return {
        "command": "fit",
        "input": path,
        "particles": path,
        "fingerprint": particles.fingerprint,
        "particle_choice": options.anywhere.values(*OF_PARTICLES),
        "seed": options.seed,
        "arguments": options.parameters,
        "reproduce": task.reproduce,
        "n_samples": len(particles),
        "n_fitted": len(found.rows),
        "confounders": confounder_records(particles, places, all_views=True, rng=rng),
        "choices": choices_as_json(_choices(transforms, found)),
        "all_views": {
            "symmetry": options.symmetry,
            "agreement": found.principal.agreement.tolist(),
            "chance": found.principal.chance,
            "information": found.principal.information.tolist(),
            # How much views predict of views far from them; None where it is not known.
            "consistency": [None if np.isnan(share) else share for share in shares],
        },
    }


def _choices(transforms: Transforms, found: AllViews) -> dict[str, Choice]:
    """Return what was chosen automatically."""
    principal, resolution = found.principal, transforms.box / transforms.grid.cut
    agreement = listed(f"{value:.2f}" for value in principal.agreement[: principal.rank])
    choices = {
        "factors dropped": Choice(
            found.dropped, "no image tells a particle's place on them; the rest was judged again"
        ),
        "low-pass": Choice(f"{resolution:.3g} A", "motions show at a tenth of a molecule's size"),
        "principal volumes": Choice(
            principal.rank,
            f"two half sets of images agree about them: correlations of {agreement}, where chance "
            f"alone gives {principal.chance:.2f}",
        ),
        "samples fitted": Choice(
            f"{len(found.rows):,} of {len(transforms):,}",
            "their views show all motions best; all are placed by their images",
        ),
        "preparation": Choice(
            "principal volumes", "noise is removed where images become coordinates"
        ),
    }
    if not found.dropped:
        del choices["factors dropped"]
    # The preparation is none of the estimator's.
    return {**choices, **found.fit.choices_, "preparation": choices["preparation"]}


def places_of(found: AllViews) -> tuple[Place, ...]:
    """Return the places of all particles on the factors."""
    placed = found.placed
    if placed is None:
        return all_places(found.fit, found.samples)
    places = []
    for k, topology in enumerate(placed.motions.topologies):
        turn = 2 * np.pi if topology == "circle" else 1.0
        deviation = placed.deviations[:, k]
        # An image that shows nothing has no confidence.
        confidence = np.clip(1 - deviation / UNKNOWN, 0, 1)
        places.append(Place(turn * placed.places[:, k], topology, confidence, turn * deviation))
    return tuple(places)
