"""Names of columns and values that tell outcomes, in English, German and French."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

Meaning = Literal["event", "status", "event free", "censored", "unclear", ""]
# What tells which value means the event: the values in words, the standard that defines the name, the name, the name if
# the times agree, the convention that 1 does, or nothing.
Evidence = Literal["values", "standard", "name", "name and times", "convention", "nothing"]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Endpoints as trials and genome atlases abbreviate them; relapse-free and disease-free survival end with a relapse.
_ABBREVIATIONS = {
    "death": _set("os dss css ttd srv"),
    "relapse": _set("rfs rfi dfs dfi ttr"),
    "progression": _set("pfs pfi ttp"),
    "metastasis": _set("mfs dmfs dmfi"),
    "any event": _set("efs"),
    "": _set("tte"),
}
_ENDPOINTS = frozenset[str]().union(*_ABBREVIATIONS.values())
UNITS = _set("""
    time times day days week weeks wk wks month months mo mos mth mths year years yr yrs hour hours duration
    zeit tag tage tagen woche wochen monat monate monaten jahr jahre jahren stunde stunden dauer
    temps jour jours semaine semaines mois an ans annee annees heure heures duree delai
""")
_SPANS = _ENDPOINTS | _set("""
    survival surv survive follow followup followed fup fu observation lenfol futime stop tstop
    uberleben ueberleben nachbeobachtung beobachtung verlauf survie suivi
""")
# Words for an event, by the endpoint that they name; a failure may be any.
_EVENT_WORDS = {
    "death": _set("""
        death deaths dead died deceased decease mortality mort expired dod demise
        tod tot todesfall verstorben gestorben exitus deces decede decedee morte mortalite
    """),
    "relapse": _set("""
        relapse relapsed recurrence recurred recur rec rel rezidiv ruckfall rueckfall rechute recidive
    """),
    "progression": _set("progression progressed progress"),
    "arrest": _set("arrest"),
    "": _set("failure failed fail"),
}
_EVENTS = frozenset[str]().union(*_EVENT_WORDS.values())
# Words for an event that are as often those of a feature: a column is not guessed by them.
_ALSO_FEATURES = _set("""
    stroke infarction chd cvd mace infect infected infection sepsis reject rejected rejection metastasis metastases
    fracture dementia tumor tumour readmission readmitted hospitalization hospitalisation churn churned
""")
_ANY_EVENT = _set("event events ereignis evenement")
# Names that say nothing about the kind of event; a 1 means the event by convention.
_STATUS = (
    _ENDPOINTS | _ANY_EVENT | _set("status stat statut outcome endpoint delta observed fustat fstat d e")
)
_FREE = _set("""
    alive living lives survived survives survivor surviving lebt lebend lebendig uberlebt ueberlebt uberlebend
    ueberlebend vivant vivante survivant survivante survecu
""")
_VITAL = _set("vital vitalstatus")
_DISEASE = _set("disease krankheit maladie")
_CENSORED = _set("lost ltfu")
# Words for the end of follow-up that may also be the event; a column is not guessed by them.
_LEFT = _set("lfu withdrawn withdrawal withdrew drop dropped dropout ausgeschieden abgebrochen perdu perdue")
# The column of analysis data of trials by CDISC in which 0 means the event.
_CDISC = re.compile(r"[a-z]{0,3}cnsr")
# Words that turn the meaning of a name around.
_NEGATIONS = _set("no not non never without nicht kein keine ohne pas sans")
_NEUTRAL = _set("""
    a all and any at by cause code coded contact cancer date disease end final first flag free frei from has in ind
    indicator is last obs of only or overall patient patients point pt seen specific study the to total until up visit
    was with x yn bis zum zur der die das des ende letzte letzter kontakt au aux de du dernier derniere fin jusqu la le
    les
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
_EVENT_WORD = re.compile(rf"{_OF}?(?:stat|status|event)")
# Survival is that until death, unless it is free of something else.
_SURVIVAL, _FREE_OF = (
    re.compile(r"surv|survi[a-z]+|ue?berleb[a-z]*"),
    re.compile(r"[a-z]*(?:free|frei[a-z]*)|sans|ohne"),
)
_SURVIVAL_ITSELF = _set("survival survie uberleben ueberleben")
_OTHER_ENDPOINTS = {"death": _FREE | _VITAL, "metastasis": _set("metastasis metastases")}
_ENDPOINT = {
    word: endpoint
    for by_endpoint in (_ABBREVIATIONS, _EVENT_WORDS, _OTHER_ENDPOINTS)
    for endpoint, found in by_endpoint.items()
    for word in found
    if endpoint and not _SURVIVAL.fullmatch(word)
}
# An endpoint in a joined word, such as rfsstat or rtime; letters mean one only there.
_JOINED = re.compile(
    r"(?:cens(?:or(?:ed)?)?)?([a-z]+?)(?:time|days?|weeks?|months?|years?|zeit|stat|status|event)?"
)
_LETTERS = {"d": "death", "r": "relapse", "p": "progression"}
# A word that is denied by its beginning or end, such as nonevent or relapsefree.
_DENIABLE = "|".join(sorted(_EVENTS | _FREE | _ANY_EVENT | _DISEASE))
_DENIED = re.compile(rf"(non|not|no|nicht|kein)({_DENIABLE})|({_DENIABLE})s?(?:(free)|(frei)(?:e[mnrs]?)?)")
_CENSORED_WORD = re.compile(r"[a-z]{0,3}[cz]ens(?!us|e)[a-z]*")


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
    >>> words("nonevent"), words("Rezidivfreie Zeit")
    (('non', 'event'), ('rezidiv', 'frei', 'zeit'))
    """
    apart = re.sub(r"(?<=[a-zà-ÿ])(?=[A-ZÀ-Þ])", " ", name)
    found = re.findall(r"[a-z]+|#", re.sub(r"\d+(?=[a-z])|\d{2,}", " # ", plain(apart)))
    parts = ((word, _DENIED.fullmatch(word)) for word in found)
    return tuple(part for word, denied in parts for part in (denied.groups() if denied else [word]) if part)


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
    if not spans and not found & UNITS:
        return 0.0
    followed = bool(found & _FOLLOWED)
    if found & (_OTHER_TIMES | _PREDICTED):
        # "Survival from diagnosis" is a time of follow-up, "time since diagnosis" is not.
        return 2.0 if followed and not found & (_PREDICTED | {"since"}) else 0.0
    if not found - spans - UNITS - _EVENTS - _STATUS - _NEUTRAL:
        return 3.0
    return 2.0 if followed else 1.0


def names_entry(name: str) -> bool:
    """Whether a name is that of a time, or age, at which observation begins.

    >>> [names_entry(name) for name in ("tstart", "age_at_entry", "entry time", "start dose", "age")]
    [True, True, True, False, False]
    """
    found = set(words(name))
    return bool(found & _BEGIN) and not found - _BEGIN - _BESIDE_BEGIN - UNITS - _NEUTRAL


def names_event(name: str) -> tuple[float, Meaning]:
    """Return how surely a name is that of an event, as in :func:`names_time`, and what a 1 in the column means.

    A 1 means the event ("event"; for a "status" by convention), that there was none ("event free"), perhaps that the
    patient is "censored", or it is "unclear".

    >>> names_event("died"), names_event("alive"), names_event("smoking_status"), names_event("Décès")
    ((3.0, 'event'), (3.0, 'event free'), (0.0, ''), (3.0, 'event'))
    """
    found = _words_of_event(name)
    meaning = _meaning(found)
    if not meaning or found & (_BEFORE | _PREDICTED):
        return 0.0, ""
    if not _strange(found):
        return 3.0, meaning
    return (0.0, "") if meaning == "status" else (1.0, meaning)


def _words_of_event(name: str) -> set[str]:
    """Return the words of the name of an event; it may be a coding alone, as "dead=1/alive=0" is."""
    return set(words(without_codes(name)) or words(name))


def _strange(found: set[str]) -> set[str]:
    """Return the words of a name that are not known."""
    known = _EVENTS | _STATUS | _FREE | _CENSORED | _NEGATIONS | _NEUTRAL | _SPANS | _VITAL
    return {
        word
        for word in found - known
        if not any(form.fullmatch(word) for form in (_EVENT_WORD, _CENSORED_WORD, _CDISC))
    }


def endpoint(name: str) -> str:
    """Return the endpoint that the name of a time or of an event tells, as death; empty if none, or several.

    >>> endpoint("os_months"), endpoint("rtime"), endpoint("rfsstat"), endpoint("status")
    ('death', 'relapse', 'relapse', '')
    >>> endpoint("Überlebenszeit"), endpoint("rezidivfreies Überleben"), endpoint("event-free survival")
    ('death', 'relapse', 'any event')
    """
    found = set(words(without_codes(name)))
    stems = {joined[1] for word in found if (joined := _JOINED.fullmatch(word)) and joined[1] != word}
    told = {_LETTERS[stem] for stem in stems & _LETTERS.keys()}
    found |= stems
    told |= {_ENDPOINT[word] for word in found & _ENDPOINT.keys()}
    free = any(map(_FREE_OF.fullmatch, found))
    if free:
        told |= {what for what, named in (("any event", _ANY_EVENT), ("relapse", _DISEASE)) if found & named}
    if any(map(_SURVIVAL.fullmatch, found)) and not told and not free:
        return "death"
    return told.pop() if len(told) == 1 else ""


def same_endpoint(time: str, event: str) -> bool:
    """Whether the names of a time and of an event may be those of one outcome."""
    told = {endpoint(time), endpoint(event)} - {""}
    return len(told) < 2


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
    """Return what a 1 means in a column whose name has these words."""
    if any(word in _CENSORED | _LEFT or _CENSORED_WORD.fullmatch(word) for word in found):
        return "censored"
    if any(map(_CDISC.fullmatch, found)):
        return "unclear" if found & _NEGATIONS else "event free"
    event = found & (_EVENTS | _ALSO_FEATURES)
    status = found & _STATUS or any(_EVENT_WORD.fullmatch(word) for word in found)
    survival = found & _SURVIVAL_ITSELF
    if found & {"free", "frei"} and (event or found & (_ANY_EVENT | _DISEASE)):
        # The end of relapse-free survival is a relapse.
        return "unclear" if survival or found & {"status", "stat"} else "event free"
    if found & _NEGATIONS and (event or status or found & _FREE):
        return "unclear"
    if found & _FREE:
        return "unclear" if event else "event free"
    if found & _VITAL:
        return "unclear"
    if event:
        return "event"
    # A 1 in a column "survival status" may stand for those who survived.
    return "unclear" if survival and not found & _ANY_EVENT else "status" if status else ""


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


def same_value(first: str, second: str) -> bool:
    """Whether two values of an event column that holds known words are spellings of one, as Yes and y are."""
    pair = {value_word(first), value_word(second)}
    return len(pair) == 1 or ((pair <= YES or pair <= NO) and len({word[0] for word in pair}) == 1)


# Value that means the event in a column where every patient is censored.
_OPPOSITE = {"false": "true", "no": "yes", "n": "y", "f": "t", "nein": "ja", "non": "oui"}


class EventReading(NamedTuple):
    """The value of a column that means the event, None if it must be asked for, and what tells it."""

    value: str | None
    by: Evidence


_ASK = EventReading(None, "nothing")


def value_of_event(values: Sequence[str], name: str = "") -> EventReading:
    """Return the value of an event column that means the event, and what tells it.

    Words such as dead and alive mean the same in every column. A 1, or yes, means what the name says, if all its words
    are known and agree. Where only some are known, the times must agree; where none is, "nothing" tells it. It is to be
    asked for where the words contradict each other, deny the event, or name censoring. A coding in the name is read as
    it is written.

    Examples
    --------
    >>> value_of_event(["alive", "Dead"]).value, value_of_event(["1", "2"], "status").value
    ('Dead', '2')
    >>> value_of_event(["0", "1"], "alive"), value_of_event(["0", "1"], "not_dead").value
    (EventReading(value='0', by='name'), None)
    >>> value_of_event(["0", "1"], "Status (0=dead, 1=alive)"), value_of_event(["0", "1"], "vivo").by
    (EventReading(value='0', by='name'), 'nothing')
    """
    if (coding := _coding(name)) is not None:
        stem, codes = coding
        meant = {codes.get(value, plain(value)): value for value in values}
        if not codes or len(meant) < len(values) or any(re.fullmatch(r"-?[\d.]+", word) for word in meant):
            return _ASK
        told = value_of_event(list(meant), stem)
        known = "name" if told.by in ("values", "convention") else told.by
        return _ASK if told.value not in meant else EventReading(meant[told.value], known)
    found = {value_word(value): value for value in values}
    held, named = set(found), _words_of_event(name)
    meaning = _meaning(named)
    dead, alive, yes, no = (held & known for known in (DEAD, ALIVE, YES, NO))
    if len(held) <= 2 and len(dead) == 1 and held - dead <= ALIVE | NO:
        return EventReading(found[dead.pop()], "values")
    if meaning in ("unclear", "censored"):
        return _ASK
    by: Evidence = "nothing"
    if any(map(_CDISC.fullmatch, named)):
        by = "standard"
    elif meaning and not _strange(named) - _ALSO_FEATURES:
        by = "convention" if meaning == "status" else "name"
    elif meaning in ("event", "event free") or named & _ANY_EVENT:
        by = "name and times"
    if len(held) == 2 and len(alive) == 1 and held - alive <= YES and meaning in ("event", "status"):
        return EventReading(found[yes.pop()], "values")
    if held == {"1", "2"}:
        # The convention of R's survival package and of many registries; questionnaires code yes as 1 and no as 2.
        return EventReading("2", by) if meaning in ("status", "") else _ASK
    # Not 1 beside yes, but y beside yes.
    if not held or held - YES - NO or any(len({word[0] for word in one}) > 1 for one in (yes, no)):
        return _ASK
    happened = no if meaning == "event free" else yes
    if happened or meaning == "event free":
        return EventReading(next((value for value in values if value_word(value) in happened), None), by)
    absent = no.pop()
    return EventReading("1" if absent == "0" else _OPPOSITE.get(absent), by)


# The share of pairs of a patient with the event and one without in which the first was followed for longer was at most
# 0.74 in 101 outcomes of public tables, and above 0.6 in two of them (docs/guessing.md).
_LONGER = {"name": 0.75, "convention": 0.6}
# Standard deviations of a share that is not by chance, p = .01.
_BEYOND_CHANCE = 2.576


def doubt_of_event(reading: EventReading, time: Any, event: Any) -> str:
    """Say why times (n,) speak against who had the event (n,), as read from name or convention; empty if they do not.

    Survivors are mostly followed for longer than those who had the event. Where the name is known in part, the times
    must speak for the reading.
    """
    if reading.by in ("values", "standard"):
        return ""
    if reading.by == "nothing":
        return "Its name does not say it"
    share, deviations = longer_with_event(time, event)
    if reading.by == "name and times":
        if share < 0.5 and deviations < -_BEYOND_CHANCE:
            return ""
        return "Its name is known in part, and the times of neither are clearly shorter, as those up to an event are"
    if share > _LONGER[reading.by] and deviations > _BEYOND_CHANCE:
        return f"Rows with {reading.value!r} have longer times than the others, as those of survivors have"
    return ""


def longer_with_event(time: Any, event: Any) -> tuple[float, float]:
    """Return the share of pairs in which the patient with the event has the longer time, and its standardised value.

    Equal times count half. The second number is the statistic of Mann and Whitney's test. Both are as without any
    difference where all patients had the event, or none.

    >>> longer_with_event([1.0, 2.0, 3.0, 3.0], [True, True, False, False])[0]
    0.0
    """
    import numpy as np  # Here, because commands that compute nothing start without it.

    event = np.asarray(event, dtype=np.bool_)
    _, place, counts = np.unique(np.asarray(time), return_inverse=True, return_counts=True)
    n, had = len(event), int(event.sum())
    pairs = had * (n - had)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    variance = pairs * (n + 1 - (counts**3 - counts).sum() / max(n * (n - 1), 1)) / 12
    if variance <= 0:
        return 0.5, 0.0
    wins = ranks[event].sum() - had * (had + 1) / 2
    return float(wins / pairs), float((wins - pairs / 2) / np.sqrt(variance))


def _coding(name: str) -> tuple[str, dict[str, str]] | None:
    """Return the rest of a name that lists codes, as in "0=alive, 1=dead", and their words; None if it lists none.

    There are no words if one is not known. R writes "status (0=alive, 1=dead)" as "status..0.alive..1.dead.".

    >>> _coding("Status (0=alive, 1=dead)"), _coding("death..0.no..1.yes."), _coding("muerto (0=no, 1=si)")
    (('status ', {'0': 'alive', '1': 'dead'}), ('death..', {'0': 'no', '1': 'yes'}), ('muerto ', {}))
    """
    text, signed = plain(name), _SIGNED.search(name) is not None
    number, word = r"(?<!\d)-?\d+(?!\d)", r"[^\W\d_]+"
    first, last = (
        re.search(pattern, text) for pattern in (rf"{number}\s*[=:]", rf"{word}\s*[=:]\s*{number}")
    )
    if last and (not first or last.start() < first.start()):
        listed = [(code, [told]) for told, code in re.findall(rf"({word})\s*[=:]\s*({number})", text)]
    else:
        parts = re.split(rf"({number})", text)
        listed = [
            (code, re.findall(word, after)) for code, after in zip(parts[1::2], parts[2::2], strict=True)
        ]
    words_of = {code: {"".join(told)} & STATES or {*told} & STATES for code, told in listed}
    # Without signs, numbers in a name may also be times.
    if not (signed or (len(listed) > 1 and all(words_of.values()))):
        return None
    clear = len(words_of) == len(listed) > 1 and all(len(told) == 1 for told in words_of.values())
    denied = any({*told} & (_NEGATIONS - NO) for _, told in listed)
    stem = without_codes(text) if signed else re.split(number, text, maxsplit=1)[0]
    return stem, {code: next(iter(told)) for code, told in words_of.items()} if clear and not denied else {}


_SIGNED = re.compile(r"\d\s*[=:]|[=:]\s*-?\d")


def without_codes(name: str) -> str:
    """Return a name without the codes that it lists, and without "yes/no".

    >>> without_codes("death (0=no, 1=yes)"), without_codes("death (yes/no)")
    ('death ', 'death ( )')
    """
    if _SIGNED.search(name):
        return re.split(r"[(\[{:;,]|\b\w+\s*=|-?\d+\s*=", name, maxsplit=1)[0]
    return re.sub(r"(?i)\b(yes|ja|oui|y)\W+(no|nein|non|n)\b", " ", name)
