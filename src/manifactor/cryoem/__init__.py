"""Cryo-EM: particles, images of one view, averages, and files of RELION, cryoSPARC and cryoDRGN."""
