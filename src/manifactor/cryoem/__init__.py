"""Cryo-EM: particles, images of one view, volumes, pictures, and their file formats.

Files of RELION, cryoSPARC and ChimeraX are read and written here.
"""
