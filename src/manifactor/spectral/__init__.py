"""From points to the spectrum of the Laplacian of the manifold they were drawn from."""
