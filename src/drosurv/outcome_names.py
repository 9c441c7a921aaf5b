"""Names of columns and values that tell outcomes, in English, German and French."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Literal

Meaning = Literal["event", "status", "event free", "censored", "unclear", ""]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Endpoints as trials and genome atlases abbreviate them.
_ENDPOINTS = _set("os pfs rfs dfs efs dss css mfs dmfs pfi dfi ttp tte ttr dmfi rfi ttd srv")
_UNITS = _set("""
    time times day days week weeks wk wks month months mo mos mth mths year years yr yrs hour hours duration
    zeit tag tage tagen woche wochen monat monate monaten jahr jahre jahren stunde stunden dauer
    temps jour jours semaine semaines mois an ans annee annees heure heures duree delai
""")
_SPANS = _ENDPOINTS | _set("""
    survival surv survive follow followup followed fup fu observation lenfol futime stop tstop
    uberleben ueberleben nachbeobachtung beobachtung verlauf survie suivi
""")
_EVENTS = _set("""
    death deaths dead died deceased decease mortality mort expired dod demise failure failed fail
    relapse relapsed recurrence recurred recur rec rel progression progressed progress arrest
    tod tot todesfall verstorben gestorben exitus rezidiv ruckfall rueckfall
    deces decede decedee morte mortalite rechute recidive
""")
# Names that say nothing about the kind of event; a 1 means the event by convention.
_STATUS = _ENDPOINTS | _set("""
    event events status stat statut outcome endpoint delta observed fustat fstat ereignis evenement d e
""")
_FREE = _set("""
    alive living lives survived survives survivor surviving lebt lebend lebendig uberlebt ueberlebt vivant vivante
    survecu
""")
_CENSORED = _set("cens censor censors censored censoring zensiert zensierung zensur censure lost ltfu")
_NEUTRAL = _set("""
    a all and any at by cause code coded contact cancer date disease end final first flag free from has in ind indicator
    is last obs of only or overall patient patients point pt seen specific study the to total until up visit was with x
    yn bis zum zur der die das des ende letzte letzter kontakt au aux de du dernier derniere fin jusqu la le les
""")
# Words that with "time" or "days" make the name of another time than that of follow-up.
_OTHER_TIMES = _set("""
    age birth born diag diagnosis diagtime start entry since prior previous wait waiting wtime dose bmi treatment
    surgery transplant onset history smoking alter geburt diagnose beginn naissance debut traitement
""")
# Parts of the calendar: names of them alone tell no time of follow-up.
_CALENDAR = _set("day week month hour tag woche monat stunde jour semaine mois heure")
# A column of more values is no column of events.
_MOST_CODES = 10
# Words for the beginning of observation, and others that stand beside them.
_BEGIN = _set(
    "entry start tstart begin enrolment enrollment inclusion truncation eintritt beginn einschluss entree debut"
)
_BESIDE_BEGIN = _set("age alter late delayed left cohort")
_PREDICTED = _set("rate prob probability pred predicted predict risk score mean median expected")
_BEFORE = _set("prior previous pre family mother father parent baseline history time days months since")
_FOLLOWED = _set("survival surv survie followup follow suivi")
# Beginnings that make the name of a time of the word time, or that of an event of the word stat.
_OF = "(?:surv|survival|fu|follow|rec|recur|rel|relapse|death|event|fail|obs|os|[prde]fs|dss|end|last|srv|[dfprst])"
_TIME_WORD = re.compile(
    rf"{_OF}(?:time|days?|weeks?|months?|years?|zeit)|(?:u|ue)berlebens\w+|(?:nach)?beobachtungs\w+|t"
)
_EVENT_WORD = re.compile(rf"{_OF}?(?:stat|status|event|cens)")
_CENSORED_WORD = re.compile(r"cens(?:or(?:ed|ing|s)?)?(?:rec|dead|death|surv|fu|d|r)?")


@cache
def plain(text: str) -> str:
    """Return a text in lower case and without accents.

    >>> plain("Décédé"), plain("Überleben")
    ('decede', 'uberleben')
    """
    bare = unicodedata.normalize("NFKD", text.replace("ß", "ss"))
    return "".join(letter for letter in bare if not unicodedata.combining(letter)).casefold().strip()


@cache
def words(name: str) -> tuple[str, ...]:
    """Return the words of a column's name, without digits at the end of a word; other digits are a word "#".

    >>> words("Survival from diagnosis (months)"), words("timeWeeks"), words("OS_MONTHS")
    (('survival', 'from', 'diagnosis', 'months'), ('time', 'weeks'), ('os', 'months'))
    """
    apart = re.sub(r"(?<=[a-zà-ÿ])(?=[A-ZÀ-Þ])", " ", name)
    return tuple(re.findall(r"[a-z]+|#", re.sub(r"\d+(?=[a-z])|\d{2,}", " # ", plain(apart))))


def names_time(name: str) -> float:
    """Return how surely a name is that of a follow-up time: 3 for certain, 2 for likely, 1 for possible, else 0.

    >>> [names_time(name) for name in ("futime", "time_to_treatment", "days to death", "Überlebenszeit (Tage)", "age")]
    [3.0, 0.0, 3.0, 3.0, 0.0]
    """
    found = set(words(name))
    if found <= {"year", "jahr", "annee"}:
        # Of the calendar.
        return 0.0
    spans = {word for word in found if word in _SPANS or _TIME_WORD.fullmatch(word)}
    if not spans and not found & _UNITS:
        return 0.0
    followed = bool(found & _FOLLOWED)
    if found & (_OTHER_TIMES | _PREDICTED):
        # "Survival from diagnosis" is a time of follow-up, "time since diagnosis" is not.
        return 2.0 if followed and not found & (_PREDICTED | {"since"}) else 0.0
    if not found - spans - _UNITS - _EVENTS - _STATUS - _NEUTRAL:
        return 3.0
    return 2.0 if followed else 1.0


def names_entry(name: str) -> bool:
    """Whether a name is that of a time, or age, at which observation begins.

    >>> [names_entry(name) for name in ("tstart", "age_at_entry", "entry time", "start dose", "age")]
    [True, True, True, False, False]
    """
    found = set(words(name))
    return bool(found & _BEGIN) and not found - _BEGIN - _BESIDE_BEGIN - _UNITS - _NEUTRAL


def names_event(name: str) -> tuple[float, Meaning]:
    """Return how surely a name is that of an event, as in :func:`names_time`, and what a 1 in the column means.

    A 1 means the event ("event"; for a "status" by convention), that there was none ("event free"), perhaps that the
    patient is "censored", or it is "unclear".

    >>> names_event("died"), names_event("alive"), names_event("smoking_status"), names_event("Décès")
    ((3.0, 'event'), (3.0, 'event free'), (0.0, ''), (3.0, 'event'))
    """
    found = set(words(name))
    meaning = _meaning(found)
    if not meaning or found & (_BEFORE | _PREDICTED):
        return 0.0, ""
    known = _EVENTS | _STATUS | _FREE | _CENSORED | _NEUTRAL | _SPANS | {"vital", "vitalstatus"}
    strange = [
        word
        for word in found - known
        if not _EVENT_WORD.fullmatch(word) and not _CENSORED_WORD.fullmatch(word)
    ]
    if not strange:
        return 3.0, meaning
    return (1.0, meaning) if meaning == "event" else (0.0, "")


def names_other_outcome(name: str, n_values: int) -> bool:
    """Whether a column of so many values is named like an event, or like a time of follow-up.

    >>> names_other_outcome("recur", 2), names_other_outcome("rtime", 900), names_other_outcome("t5", 90)
    (True, True, False)
    """
    found = set(words(name))
    if not found - _CALENDAR or max(map(len, found)) == 1:
        return False
    sure = names_event(name)[0] if 2 <= n_values <= _MOST_CODES else names_time(name)
    return n_values >= 2 and sure == 3.0


def _meaning(found: set[str]) -> Meaning:
    if any(word in _CENSORED or _CENSORED_WORD.fullmatch(word) for word in found):
        return "censored"
    if found & _FREE or ("free" in found and found & (_EVENTS | {"disease", "event"})):
        return "event free"
    if found & {"vital", "vitalstatus"}:
        return "unclear"
    if found & _EVENTS:
        return "event"
    if found & _STATUS or any(_EVENT_WORD.fullmatch(word) for word in found):
        return "status"
    return "unclear" if found & {"survival", "survie"} else ""


# Values of an event column that tell a state, whatever the column is called.
DEAD = _set("""
    dead died death deceased expired failed failure relapsed relapse recurred recurrence progressed progression event
    tot tod verstorben gestorben exitus ereignis rezidiv ruckfall rueckfall
    decede decedee deces mort morte evenement rechute recidive
""")
ALIVE = _set("""
    alive living live lives survived survivor censored censor cens lost withdrawn noevent eventfree diseasefree none
    discharged losttofollowup ltfu lebt lebend lebendig uberlebt ueberlebt zensiert keinereignis ereignisfrei
    vivant vivante censure perdudevue
""")
YES = _set("1 yes y true t ja j wahr oui o vrai")
NO = _set("0 no n false f nein falsch non faux")
STATES = DEAD | ALIVE | YES | NO
# Values that say that the outcome is not known.
UNKNOWN = _set("unknown unk ? n/a missing notknown unbekannt inconnu")


def value_word(value: str) -> str:
    """Return a value of an event column as one plain word; a code before it, as in ``1:DECEASED``, is dropped.

    >>> value_word("0:LIVING"), value_word("Lost to follow-up"), value_word("-1")
    ('living', 'losttofollowup', '-1')
    """
    text = plain(value)
    if coded := re.fullmatch(r"-?\d+\s*[:=.)-]+\s*(\D.*)", text):
        text = coded[1]
    return text if re.fullmatch(r"-?[\d.]+", text) else re.sub(r"[\s_-]", "", text)


# Value that means the event in a column where every patient is censored.
_OPPOSITE = {"false": "true", "no": "yes", "n": "y", "f": "t", "nein": "ja", "non": "oui"}
# Names that say that a 1 marks censored patients; "cens" is used for either.
_MARKS_CENSORED = _set("censored censoring zensiert zensierung censure")


def value_of_event(values: Sequence[str], name: str = "") -> str | None:
    """Return the value of an event column that means the event; None if that is ambiguous.

    Words such as dead and alive mean the same in every column; 1 and 0, yes and no mean the opposite in a column that
    is named after those who had no event, and are ambiguous in one that is named after censoring.

    Examples
    --------
    >>> value_of_event(["alive", "Dead"]), value_of_event(["1", "2"]), value_of_event(["cancer", "stroke"])
    ('Dead', '2', None)
    >>> value_of_event(["0:LIVING", "1:DECEASED"]), value_of_event(["0", "1"], "alive"), value_of_event(["-1", "1"])
    ('1:DECEASED', '0', None)
    """
    found = {value_word(value): value for value in values}
    held, meaning = set(found), names_event(name)[1]
    dead, alive, yes, no = (held & known for known in (DEAD, ALIVE, YES, NO))
    if len(held) == 2 and len(dead) == 1 and held - dead <= ALIVE | NO:
        return found[dead.pop()]
    if len(held) == 2 and len(alive) == 1 and held - alive <= YES and meaning in ("event", "status"):
        return found[yes.pop()]
    if held == {"1", "2"}:
        # The convention of R's survival package and of many registries; questionnaires code yes as 1 and no as 2.
        return "2" if meaning in ("status", "") else None
    if len(held) <= 2 and len(yes) <= 1 and len(no) <= 1 and held <= YES | NO:
        return _of_yes_and_no(found, yes, no, name)
    if len(held) == 1 and dead:
        return found[dead.pop()]
    return None


def _of_yes_and_no(found: dict[str, str], yes: set[str], no: set[str], name: str) -> str | None:
    """Return which of yes and no means the event in a column of this name."""
    _, meaning = names_event(name)
    if meaning == "unclear" or set(words(name)) & _MARKS_CENSORED:
        return None
    if meaning == "event free":
        return found[no.pop()] if no else None
    if yes:
        return found[yes.pop()]
    (absent,) = no
    return "1" if absent == "0" else _OPPOSITE.get(absent)
