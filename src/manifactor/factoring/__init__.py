"""From a spectrum to the factors of the manifold."""
