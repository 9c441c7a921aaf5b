"""The path of `Part` and `Section` in 0.2, which will be removed in 0.4; use ``drosurv.report.sections``."""

from typing import Any

from drosurv.errors import warn_caller


def __getattr__(name: str) -> Any:
    from drosurv.report import report

    if name not in ("Part", "Section", "all_sections"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new = "drosurv.report.report" if name == "all_sections" else "drosurv.report.sections"
    warn_caller(
        f"{__name__}.{name} is now {new}.{name}; the old path will be removed in 0.4.",
        category=DeprecationWarning,
    )
    return getattr(report, name)
