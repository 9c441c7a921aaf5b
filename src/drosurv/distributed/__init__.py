"""Linear models on many machines, or on files larger than memory; needs the extra ``dask`` for a cluster."""

from drosurv.distributed.fit import fit

__all__ = ["fit"]
