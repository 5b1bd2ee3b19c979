"""Studies of the methods: the accuracy benchmark and the paper's figures."""
