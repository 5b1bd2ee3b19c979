"""Studies of the method itself: the paper's figures and table, accuracy, and calibration.

They are part of the repository, not of the package:

    python -m studies.accuracy [--quick]
    python -m studies.calibration [--problems N]
    python -m studies.paper [fig1 ...]          or `make reproduce`
"""
