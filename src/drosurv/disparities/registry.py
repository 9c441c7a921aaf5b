"""The training penalties by the name that users give."""

from __future__ import annotations

from drosurv.disparities.censoring_aware import RPGroup, RPIndividual
from drosurv.disparities.group import KeyaGroup
from drosurv.disparities.individual import KeyaIndividual
from drosurv.disparities.intersectional import KeyaIntersectional
from drosurv.disparities.penalty import Penalty

# Whether one needs groups is its class attribute `needs_groups`.
PENALTIES: dict[str, type[Penalty]] = {
    "keya_individual": KeyaIndividual,
    "keya_group": KeyaGroup,
    "keya_intersectional": KeyaIntersectional,
    "rp_individual": RPIndividual,
    "rp_group": RPGroup,
}
