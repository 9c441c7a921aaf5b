"""Fit linear models on a Dask cluster (needs the extra ``dask``), or on files larger than memory."""

from drosurv.distributed.fit import fit

__all__ = ["fit"]
