"""Samples made of images of one view."""
