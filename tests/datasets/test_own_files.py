"""Files a user gives: read as the downloaded ones, and refused with the reason."""

import numpy as np
import pytest

from drosurv.datasets import load_seer, load_support

SUPPORT = """\
sno,age,death,sex,d.time,num.co,race,diabetes,dementia,ca,meanbp,wblc,hrt,resp,temp,crea,sod
1, 65,0,male,2029,0,other,0,0,metastatic, 97.0,  6.0, 69,22,36.0, 1.2,141
2, 65.001,1,female,4,2,white,0,1,no, 43.0,,112,34,34.5, 5.5,132
3, 80,1,female,47,2,,1,0,yes, 70.0, 8.5, 88,28,37.4,,134
"""

WHEEL_SEER = """\
Age,Race,Marital Status,T Stage ,N Stage,6th Stage,differentiate,Grade,A Stage,Tumor Size,Estrogen Status,\
Progesterone Status,Regional Node Examined,Reginol Node Positive,Survival Months,Status
68,White,Married,T1,N1,IIA,Poorly differentiated,3,Regional,4,Positive,Positive,24,1,60,Alive
65,Black,Divorced,T2,N2,IIB,Moderately differentiated,2,Distant,35,Positive,Negative,14,5,62,Dead
66,Other,Single ,T3,N3,IIIA,Well differentiated,1,Regional,63,Negative,Positive,14,7,75,Alive
50,White,Widowed,T4,N1,IIIB,Moderately differentiated,2,Regional,18,Positive,Positive,2,1,84,Alive
40,White,Separated,T1,N3,IIIC,Poorly differentiated,3,Regional,18,Positive,Positive,2,1,9,Dead
"""
OTHER_SEER = """\
Age,Race ,Marital Status,,T Stage ,N Stage,6th Stage,Grade,A Stage,Tumor Size,Estrogen Status,\
Progesterone Status,Regional Node Examined,Reginol Node Positive,Survival Months,Status
68,White,Married (including common law),,T1,N1,IIA,Poorly differentiated; Grade III,Regional,4,Positive,\
Positive,24,1,60,Alive
65,Black,Divorced,,T2,N2,IIB,Moderately differentiated; Grade II,Distant,35,Positive,Negative,14,5,62,Dead
66,"Other (American Indian/AK Native, Asian/Pacific Islander)",Single (never married),,T3,N3,IIIA,\
Well differentiated; Grade I,Regional,63,Negative,Positive,14,7,75,Alive
50,White,Widowed,,T4,N1,IIIB,Moderately differentiated; Grade II,Regional,18,Positive,Positive,2,1,84,Alive
40,White,Separated,,T1,N3,IIIC,Poorly differentiated; Grade III,Regional,18,Positive,Positive,2,1,9,Dead
"""
FOURTH_GRADE = {
    WHEEL_SEER: "70,White,Married,T1,N1,IIA,Undifferentiated, anaplastic; Grade IV,"
    "Regional,4,Positive,Positive,24,1,60,Alive\n",
    OTHER_SEER: "70,White,Married (including common law),,T1,N1,IIA,Undifferentiated; anaplastic; Grade IV,"
    "Regional,4,Positive,Positive,24,1,60,Alive\n",
}


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "own.csv"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("text", [WHEEL_SEER, OTHER_SEER], ids=["wheel", "other"])
def test_both_spellings_of_seer_give_the_published_codes(text, write):
    seer = load_seer(path=write(text))
    assert seer.X.to_numpy().tolist() == [
        [1, 1, 0, 0, 0, 0, 1, 0, 4, 0, 0, 24, 1],
        [0, 0, 1, 1, 1, 1, 0, 1, 35, 0, 1, 14, 5],
        [1, 0, 2, 2, 2, 2, 2, 0, 63, 1, 0, 14, 7],
        [0, 1, 3, 3, 0, 3, 0, 0, 18, 0, 0, 2, 1],
        [0, 1, 4, 0, 2, 4, 1, 0, 18, 0, 0, 2, 1],
    ]
    assert seer.y["time"].tolist() == [60, 62, 75, 84, 9]
    assert seer.y["event"].tolist() == [False, True, False, False, True]
    assert seer.sensitive_features["age"].tolist() == [">65", "<=65", ">65", "<=65", "<=65"]
    assert seer.sensitive_features["race"].tolist() == ["white", "non-white", "non-white", "white", "white"]


@pytest.mark.parametrize("text", [WHEEL_SEER, OTHER_SEER], ids=["wheel", "other"])
def test_the_fourth_grade_changes_no_other_code(text, write):
    assert load_seer(path=write(text + FOURTH_GRADE[text])).X["grade"].tolist() == [1, 0, 2, 0, 1, 3]


def test_a_support_file_is_read_as_described(write):
    support = load_support(path=write(SUPPORT))
    nan = np.nan
    np.testing.assert_array_equal(
        support.X.to_numpy(),
        [
            [0, 1, 0, 0, 0, 0, 2, 97, 69, 22, 36, 6, 141, 1.2],
            [1, 0, 1, 2, 0, 1, 0, 43, 112, 34, 34.5, nan, 132, 5.5],
            [1, 0, 0, 2, 1, 0, 1, 70, 88, 28, 37.4, 8.5, 134, nan],
        ],
    )
    assert support.y.tolist() == [(False, 2029), (True, 4), (True, 47)]
    assert support.sensitive_features.to_numpy().tolist() == [
        ["<=65", "male", "non-white"],
        [">65", "female", "white"],
        [">65", "female", "non-white"],
    ]


def test_own_files_can_be_regrouped_as_published(write):
    published = load_support(as_published=True, path=write(SUPPORT))
    assert published.X.index.tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("wblc,", "white.count,", "no column 'wblc'"),
        (",female,4", ",Female,4", "'Female' in column 'sex', line 3, is not one of female, male"),
        (",female,4", ",,4", "in column 'sex', line 3, is not one of"),
        (" 65,0", ",0", "column 'age', line 2, is missing"),
        (",47,", ",soon,", "'soon' in column 'd.time', line 4, is not a number"),
        (",white,", ",White,", "'White' in column 'race'"),
        (",1,female", ",2,female", "column 'death', line 3, is not one of 0, 1"),
    ],
)
def test_a_wrong_file_is_refused_with_column_and_value(old, new, message, write):
    assert old in SUPPORT
    with pytest.raises(ValueError, match=message):
        load_support(path=write(SUPPORT.replace(old, new)))


def test_a_path_that_is_no_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv"):
        load_seer(path=tmp_path / "nowhere.csv")
