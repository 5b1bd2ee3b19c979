"""Studies of the methods: accuracy, calibration, and the paper's figures."""
