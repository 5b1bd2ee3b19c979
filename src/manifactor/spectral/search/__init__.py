"""Searches for nearest neighbours, all behind the interface `NeighborSearch`."""
