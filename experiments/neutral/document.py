"""The comparison as a Markdown document; beside it as CSV our fits, from which it is written, and each dataset."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pandas as pd

from experiments.neutral.differences import (
    COX,
    LEARNERS,
    SCORES,
    Score,
    against,
    mean_ranks,
    nemenyi,
    own_less_cox,
    own_means,
    published_less_cox,
)
from experiments.neutral.fits import LABELS
from experiments.studies.pages import table

COMMAND = "python -m experiments.neutral PATH"
# When our fits were made, and by which version.
MADE = "2026-11-19, drosurv 0.5.0"
# Our c-index of plain Cox is expected to agree with the published one this closely.
AGREEMENT = 0.0002
# At most so many kinds of rules are listed for a dataset.
MOST_LISTED = 5


def write_document(path: Path, rows: pd.DataFrame, published: pd.DataFrame) -> list[Path]:
    """Write the document and its three CSV files; `rows` has one row per dataset, method and iteration."""
    beside, datasets, pairs = (
        path.with_name(f"{path.stem}_{what}.csv") for what in ("fits", "datasets", "pairs")
    )
    # Rounded, so that the document is the same if it is written from the file.
    kept = rows.assign(rules=rows["rules"].map("; ".join)).round({"c": 6, "ibs": 6, "seconds_to_fit": 3})
    kept.to_csv(beside, index=False, lineterminator="\n")
    rows = read_fits(beside)
    means = own_means(rows)
    against_each = _failed(means, published, _ours(means))[1]
    path.write_text(text(rows, means, published, path.stem), encoding="utf-8")
    by_dataset(means).to_csv(datasets, index=False, lineterminator="\n")
    against_each.to_csv(pairs, index=False, lineterminator="\n")
    return [path, beside, datasets, pairs]


def read_fits(path: Path) -> pd.DataFrame:
    """Read fits that :func:`write_document` wrote."""
    rows = pd.read_csv(
        path, keep_default_na=False, na_values={"c": [""], "ibs": [""], "seconds_to_fit": [""]}
    )
    return rows.assign(rules=[rules.split("; ") if rules else [] for rules in rows["rules"]])


def text(rows: pd.DataFrame, means: pd.DataFrame, published: pd.DataFrame, stem: str) -> str:
    """The document in Markdown; the names of the files beside it begin with `stem`."""
    ours = _ours(means)
    sections = [
        "# A neutral comparison, on its own folds",
        _result(means, published, ours[-1]),
        _opening(means, published, rows),
        "## Control: our plain Cox against the published one",
        *_control(means, published),
        "## All learners",
        *(part for score in SCORES for part in _learners(means, published, score, ours)),
        "## Failed fits",
        *_failed(means, published, ours)[0],
        _shown(f"{stem}_pairs.csv"),
        "## Wins and losses by dataset",
        "\nDifferences from our own Cox on the same folds.\n",
        _shown(f"{stem}_datasets.csv"),
        "## What repair found",
        *_rules(rows),
        "## Seconds",
        *_seconds(means),
        "## What this does not show",
        _limits(),
    ]
    return "\n".join(sections) + "\n"


def _shown(file: str) -> str:
    return f"```{{csv-table}}\n:file: {file}\n:header-rows: 1\n```\n"


def _ours(means: pd.DataFrame) -> list[str]:
    return [method for method in LABELS if method != "cox" and method in set(means["method"])]


def _result(means: pd.DataFrame, published: pd.DataFrame, method: str) -> str:
    """What one of our models reaches, in both scores."""
    parts = []
    for score in SCORES:
        own = own_less_cox(means, score)[method]
        theirs, _ = published_less_cox(published, score)
        ranks = mean_ranks(own, theirs.loc[own.index], score.better)
        found = against(own, own * 0, None, score.better)
        best = ranks.drop("own").idxmin()
        parts.append(
            f"{score.label} {found['mean']:+.4f} ({found['low']:+.4f} to {found['high']:+.4f}), mean rank "
            f"{ranks['own']:.1f} among {len(ranks)} (best other: {LEARNERS[str(best)]}, {ranks[best]:.1f})"
        )
    return f"\n{LABELS[method]} less Cox: {'; '.join(parts)}. [What this does not show](#what-this-does-not-show)."


def _opening(means: pd.DataFrame, published: pd.DataFrame, rows: pd.DataFrame) -> str:
    """What was compared, and whether it is complete."""
    wanted = published[published["learner_id"] == COX].set_index("task_id")["iters"]
    done = means.groupby("dataset")["iterations"].min().reindex(wanted.index).fillna(0)
    missing = int((wanted - done).clip(lower=0).sum())
    failed = int((rows["error"] != "").sum())
    lines = [
        "",
        "Burk, Zobolas, Bischl, Bender, Wright and Sonabend (A Large-Scale Neutral Comparison Study of Survival Models "
        "on Low-Dimensional Data, arXiv 2406.04098) compare 19 learners on 34 datasets, most of them tuned for hours. "
        "Their conclusion: none is significantly better than Cox. Their repository (slds-lmu/"
        "paper_2023_survival_benchmark) has the tables, the folds and the mean scores. Our models were fitted on the "
        f"same folds: {rows['dataset'].nunique()} datasets, {len(rows):,} fits, {failed} of which failed. Scores are "
        "defined as there: Harrell's C of pairs with different times; the Brier score weighted by the censoring of "
        "the training patients and integrated until 80 % of the test patients are no longer at risk. Levels of a "
        "factor under 5 % are merged as there, and ties are Efron's. Nothing was tuned on test patients.",
        "",
        f"Made by `{COMMAND}` on a checkout of that repository ({MADE}); our fits are in [neutral_fits.csv]"
        "(neutral_fits.csv), their mean scores in [neutral_published.csv](neutral_published.csv).",
        "",
    ]
    if missing:
        lines += [f"**Not complete**: {missing} iterations are missing; run the same command again.", ""]
    return "\n".join(lines)


def _control(means: pd.DataFrame, published: pd.DataFrame) -> list[str]:
    """Our Cox and theirs, on datasets where they differ."""
    own = means[means["method"] == "cox"].set_index("dataset")
    theirs = published[published["learner_id"] == COX].set_index("task_id").loc[own.index]
    difference = {score.name: own[score.name] - theirs[score.published] for score in SCORES}
    close = {name: int((found.abs() <= AGREEMENT).sum()) for name, found in difference.items()}
    body = [
        [
            str(name),
            str(own.loc[name, "iterations"]),
            *(
                part
                for score in SCORES
                for part in (
                    f"{own.loc[name, score.name]:.4f}",
                    f"{theirs.loc[name, score.published]:.4f}",
                    f"{difference[score.name].loc[name]:+.4f}",
                )
            ),
        ]
        for name in own.index
        if max(abs(found.loc[name]) for found in difference.values()) > AGREEMENT
    ]
    header = ["dataset", "iterations", "C, ours", "published", "difference", "Brier, ours", "published"]
    return [
        "",
        f"The same model by the same scores on the same folds: C agrees to {AGREEMENT} on {close['c']} and the Brier "
        f"score on {close['ibs']} of {len(own)} datasets. The others, below, have factors with levels that some "
        "training part lacks (replaced at random there, by the most frequent level here) or columns on which R's Cox "
        "model does not converge. Published scores are therefore compared by their difference from the published Cox, "
        "ours by the difference from our own Cox.",
        "",
        *table([*header, "difference"], body),
    ]


def _learners(means: pd.DataFrame, published: pd.DataFrame, score: Score, ours: list[str]) -> list[str]:
    """Every learner less Cox in one score."""
    theirs, failed = published_less_cox(published, score)
    own = own_less_cox(means, score)
    theirs, failed = theirs.loc[own.index], failed.loc[own.index]
    # Zero for all: what is left of Cox.
    nothing = pd.Series(0.0, index=own.index)
    others_ranks = mean_ranks(own[ours[-1]], theirs, score.better)
    rows = [(LABELS[m], own[m], mean_ranks(own[m], theirs, score.better)["own"], 0) for m in ours]
    rows += [
        (LEARNERS[str(name)], theirs[name], others_ranks[name], int((failed[name] > 0).sum()))
        for name in others_ranks.index
        if name != "own"
    ]
    body = []
    for label, values, rank, n_failed in sorted(rows, key=lambda row: row[2]):
        if (values == 0).all():
            body.append([label, "0", "–", "–", f"{rank:.2f}", "–"])
            continue
        found = against(values, nothing, None, score.better)
        body.append(
            [
                label,
                f"{found['mean']:+.4f} ({found['low']:+.4f} to {found['high']:+.4f}), {found['median']:+.4f}",
                f"{found['better']} of {found['datasets']}",
                _p(found["p"]),
                f"{rank:.2f}",
                str(n_failed) if n_failed else "–",
            ]
        )
    n = theirs.shape[1] + 1
    side = "higher" if score.better > 0 else "lower"
    header = [
        f"{score.label} less Cox ({side} is better)",
        "mean (95 % over datasets), median",
        "better on",
        "Wilcoxon's p",
        f"mean rank among {n}",
        "datasets with failed fits",
    ]
    return [
        "",
        f"### {score.label[0].upper()}{score.label[1:]}",
        "",
        *table(header, body),
        f"Published learners are those tuned for this score, if there are any. Each of our models is ranked without "
        f"our others among the {n - 1} learners, whose ranks are those beside {LABELS[ours[-1]]}. "
        f"Mean ranks of {n} methods on {len(own)} datasets differ significantly (Nemenyi, 5 %) only by "
        f"{nemenyi(n, len(own)):.1f} or more. "
        "Intervals are percentiles of 10,000 resamples of the datasets.",
        "",
    ]


def _failed(means: pd.DataFrame, published: pd.DataFrame, ours: list[str]) -> tuple[list[str], pd.DataFrame]:
    """Return what is said of the last of our models against each learner, and the table.

    It is compared on all datasets, and without those on which the learner failed.
    """
    method = ours[-1]
    pairs = []
    lines = [
        "",
        "In the published means a failed fit counts as Kaplan-Meier (C = 0.5). Below, "
        f"{LABELS[method]} is compared with each learner on all datasets, and on those where none of its fits failed.",
        "",
    ]
    for score in SCORES:
        theirs, failed = published_less_cox(published, score)
        own = own_less_cox(means, score)[method]
        ranks = mean_ranks(own, theirs, score.better).drop("own")
        counts = {"all": [0, 0], "kept": [0, 0]}
        for name in ranks.index:
            cells = [score.label, LEARNERS[str(name)]]
            for key, dropped in (("all", None), ("kept", failed[name])):
                found = against(own, theirs[name], dropped, score.better)
                counts[key][0] += found["mean"] * score.better > 0
                counts[key][1] += found["mean"] * score.better > 0 and found["p"] < 0.05
                if key == "kept" and not (failed[name] > 0).any():
                    cells += ["the same", ""]
                    continue
                cells += [
                    f"{found['mean']:+.4f} ({found['low']:+.4f} to {found['high']:+.4f}), "
                    f"{found['better']} of {found['datasets']}",
                    _p(found["p"]),
                ]
            pairs.append(cells)
        best = LEARNERS[str(ranks.index[0])]
        lines += [
            f"The mean {score.label} of {LABELS[method]} is better than that of {counts['all'][0]} of {len(ranks)} "
            f"learners, of {counts['all'][1]} significantly (p < 0.05, Wilcoxon's test); without failed datasets, than "
            f"that of {counts['kept'][0]}, of {counts['kept'][1]} significantly. Among the learners, "
            f"{best} has the best mean rank.",
            "",
        ]
    header = ["score", f"{LABELS[method]} less".replace("`", ""), "all datasets, better on", "p"]
    return lines, pd.DataFrame(pairs, columns=[*header, "without its failed datasets, better on", "p there"])


def by_dataset(means: pd.DataFrame) -> pd.DataFrame:
    """Return our models less our Cox, dataset by dataset."""
    ours = _ours(means)
    own = {score.name: own_less_cox(means, score) for score in SCORES}
    repaired = means[means["method"] == "repaired"].set_index("dataset")
    body = [
        [
            str(name),
            *(f"{own[score.name].loc[name, method]:+.4f}" for score in SCORES for method in ours),
            f"{repaired.loc[name, 'repaired']} of {repaired.loc[name, 'iterations']}"
            if name in repaired.index
            else "–",
        ]
        for name in own["c"].index
    ]
    header = [f"{short} {LABELS[method]}".replace("`", "") for short in ("C", "Brier") for method in ours]
    return pd.DataFrame(body, columns=["dataset", *header, "repaired in"])


def _rules(rows: pd.DataFrame) -> list[str]:
    """What was repaired by dataset with how often; rules by their columns, because thresholds differ by iteration."""
    own = rows[rows["method"] == "repaired"]
    body = []
    for name, found in own.groupby("dataset", sort=False):
        if not (found["rules"].map(len) > 0).any():
            continue
        # In how many iterations, however many rules of one have the same columns.
        counts = Counter(what for rules in found["rules"] for what in dict.fromkeys(map(_columns, rules)))
        listed = [f"{what} ({k})" for what, k in counts.most_common(MOST_LISTED)]
        others = f"{len(counts) - len(listed)} others" if len(counts) > len(listed) else ""
        acted = f"{int((found['rules'].map(len) > 0).sum())} of {len(found)}"
        body.append([str(name), acted, "; ".join(part for part in (*listed, others) if part)])
    if not body:
        return ["", "Nothing was repaired.", ""]
    return [
        "",
        "Columns of the rules, in how many iterations. *Everyone* is a recalibration; *by period of the follow-up*, "
        "the effect of the score changes with time.",
        "",
        *table(["dataset", "iterations repaired", "repaired, with how often"], body),
    ]


def _columns(rule: str) -> str:
    """The columns of a rule, such as "age and sex" of "age > 60 and sex is f"."""
    names = (re.split(r" (?:<=|>|=|not|is not|is|in) ", part)[0] for part in rule.split(" and "))
    return " and ".join(dict.fromkeys(names))


def _seconds(means: pd.DataFrame) -> list[str]:
    """Seconds of a fit."""
    body = []
    for method, found in means.groupby("method", sort=False):
        slowest = found.loc[found["seconds"].idxmax()]
        body.append(
            [
                LABELS[str(method)],
                f"{found['seconds'].mean():.2f}",
                f"{found['seconds'].median():.2f}",
                f"{slowest['seconds']:.1f} ({slowest['dataset']})",
            ]
        )
    return [
        "",
        "Of one fit, means over datasets; 16 fits at a time on a server with 16 cores. The publication does not give "
        "times by learner; its budget for tuning is hours a fit.",
        "",
        *table(["model", "mean", "median", "longest"], body),
    ]


def _limits() -> str:
    return "\n".join(
        [
            "",
            "- 34 datasets with few columns. Nothing here is about images, texts or thousands of columns.",
            "- The datasets were chosen by others, but they are public: some (nwtco, flchain, support, ...) are also "
            "in the comparisons with which our defaults were designed. Two defaults, the base model of `RepairedCox` "
            "and the repair of effects that change with time, were chosen after a first run on these very folds.",
            "- The differences are small: a mean over datasets hides that most of them hardly differ from Cox.",
            "- The other learners were run by the authors of the publication, with their settings, timeouts and "
            "fallback; other settings may give other ranks.",
            "- Harrell's C and the Brier score say little about single groups of patients, which is what repairs "
            "are for.",
        ]
    )


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
