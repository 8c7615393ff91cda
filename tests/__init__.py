"""The tests, whose processes compute with one thread each, as those of ``make test`` do."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
