"""The kernels of the CPU, compiled by Numba and threaded."""
