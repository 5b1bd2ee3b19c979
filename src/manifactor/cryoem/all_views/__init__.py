"""Images of all views: one coordinate on each motion for every particle.

In the order of a fit: `transforms` reads low Fourier coefficients of all images and knows which
frequencies of a volume they show, `regression` finds volumes from images, `principal` the volumes
in which particles differ, `motions` describes them as functions of coordinates, `shapes` proposes
motions, `placing` places all particles on them, `fitting` does all of it. `model` is the molecule
that a run keeps, and `volumes` shows it.
"""
