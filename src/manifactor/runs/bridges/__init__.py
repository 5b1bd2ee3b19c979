"""Bridges to programs that reconstruct volumes.

Each gives a program the points along a factor in its own coordinates, or weights, or particles,
with commands that run as they are printed.

points, commands
    one particle for each bin along a factor; lines of a shell
request
    what is exported, which every bridge is given
cryodrgn, recovar, aspire, bin_files
    the files and commands of each program
exporting
    `export`, and the table of all bridges
"""

from manifactor.runs.bridges.exporting import BRIDGES, export

__all__ = ["BRIDGES", "export"]
