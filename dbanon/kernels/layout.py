"""How the costs of boxes lie in flat arrays (see :mod:`dbanon.kernels.boxes`)."""

START, SIZE, STRIDE = 0, 1, 2
TABLE, SET = -1, -2
HALF = 31
