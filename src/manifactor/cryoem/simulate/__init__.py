"""Simulated images and volumes of a molecule with a turning rotor and a stretched rest."""
