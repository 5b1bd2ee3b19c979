"""Cryo-EM: particles, images of one view and of all views, volumes, and their file formats.

Files of RELION, cryoSPARC and ChimeraX are read and written here.
"""
