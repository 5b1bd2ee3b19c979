"""Images of all views: one coordinate on each motion for every particle.

In the order of a fit: `transforms` reads low Fourier coefficients of all images and knows which
frequencies of a volume they show, `regression` finds volumes from images, `principal` the volumes
in which particles differ, `motions` describes what was found as functions of coordinates, `placing`
learns volumes along the motions and places all particles, `fitting` does all of it. What a run
keeps is a `model`: a molecule in any state from any direction; `volumes` and `shown` show it.
"""
