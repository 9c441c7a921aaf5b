"""Names and values of a user's table as Markdown shows them: as they are."""

from __future__ import annotations

import re

# A closing angle bracket means nothing without an opening one, and rules are full of them.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<#|~$&])")


def literal(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
