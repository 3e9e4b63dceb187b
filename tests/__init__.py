"""Tests."""

import os

# Set before numpy is imported: tests run on all processors, where the threads of OpenMP and BLAS would wait for each
# other. Tests of what must not depend on threads set their number.
os.environ["OMP_NUM_THREADS"] = "1"
