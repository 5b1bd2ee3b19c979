"""Images of all views: one place on each motion for every particle.

transforms : low Fourier coefficients of all images, read once
symmetry : the rotations of point groups
slices : a volume's Fourier transform, and the slices of it that images show
regression : volumes from images and what is known of them, and back
nuisances : changes of images that are no motion: errors of poses, and contrast
principal : the mean volume and the principal volumes, in which all particles differ
directions : an even grid of views, and how well they show the motions
motions : intervals and circles as features of a volume, and a grid of places
placing : the places of all particles on the motions that were found
model : a molecule in any state, from any direction
factoring : all of it, from transforms to places
"""
