"""Images of all views: one place on each motion for every particle.

transforms : low Fourier coefficients of all images, read once symmetry : the rotations of point
groups slices : a volume's Fourier transform, and the slices of it that images show equations :
normal equations of volumes, one small system for each frequency regression : volumes from images
and what is known of them likelihoods : what volumes say of images, and functions of that mapped
over images nuisances : changes of images that are no motion: errors of poses, and contrast
principal : the mean volume and the principal volumes, in which all particles differ terms :
functions of places that a volume is a sum of motions : intervals and circles as features of a
volume, and a grid of places place_features : places on factors of any shape as features of a volume
learning : volumes along the motions, and the terms that images show consistency : whether a place
means the same in all views placing : the places of all particles on the motions that were found
view_map : how many particles each view has, and how well it shows the motions model : a molecule in
any state, from any direction known_places : the same from places that another program told
factoring : all of it, from transforms to places
"""
