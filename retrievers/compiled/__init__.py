"""Loops that numba compiles. Import them where they are called: loading numba takes half a second."""
