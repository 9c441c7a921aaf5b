"""The document of the study of find and repair: tables from its finished units, in plain words.

python -m experiments.studies.repair_document results/repair
"""

import sys
from datetime import date

import numpy as np

from drosurv._version import __version__
from experiments.studies.pages import DOCS, mean_se, table, write_table
from experiments.studies.repair import ABLATED, ABLATIONS, BASES, FAMILIES, FROZEN, ON_BASES, SIZES
from experiments.studies.repair_data import SETTINGS
from experiments.studies.rows import load

METHODS = ["Cox", "SubgroupRobust", "boosted trees", "repair", "knows the group"]
TARGETS = {
    "default": ".16 / .195",
    "minority 5 %": ".15 / .20",
    "n = 500": ".05 / .16",
    "d = 50": ".17 / .19",
    "x5 > .5 and x6 > .5": ".14 / .20",
}


def write(folder):
    """Write the tables; the account of what was tried is on the page alone, and stays."""
    page = DOCS / "repair.md"
    _, heading, tried = page.read_text(encoding="utf-8").partition("## Tried\n")
    page.write_text(document(load(folder)) + "\n" + heading + tried, encoding="utf-8")


def document(data):
    return "\n".join(
        [
            "# Find and repair: the evidence",
            "",
            f"Made on {date.today()} with drosurv {__version__} by",
            "",
            *commands(data),
            "    python -m experiments.studies.repair_document results/repair",
            "",
            f"{len(data):,} models were measured. How the method works, and what is proven: "
            "[the guide](guide/repairs.md). The repaired model is plain Cox unless another is named. *Gain* is the "
            "mean full log likelihood of a patient over the model that predicts the same for everyone; below zero, "
            "the group is predicted worse than by one curve for everybody. Each seed draws new patients for training "
            "and 4,000 for the test. Standard errors of means over seeds in parentheses.",
            "",
            *planted(data[data.part == "a"]),
            *nulls(data[data.part == "n"]),
            *frozen(data[data.part == "f"]),
            *sizes(data[data.part == "d"]),
            *ablations(data[data.part == "c"]),
            *bases(data[data.part == "b"]),
        ]
    )


def commands(data):
    """The runs that made the finished units; each option's default asks for more."""
    lines = []
    for part in sorted(set(data.part), key="anfdcb".index):
        own = data[data.part == part]
        seeds = own.groupby(["setting", "variant"]).seed.nunique()
        wanted = {"n": f"--nulls {seeds.min()}", "f": f"--seeds {seeds.min() // 4} --nulls {seeds.max()}"}
        lines.append(
            f"    python -m experiments.studies.repair --part {part} {wanted.get(part, f'--seeds {seeds.min()}')}"
            " --output results/repair"
        )
    return lines


def both(rows):
    """Minority gain / overall gain."""
    minority = f"{rows['minority'].mean():.3f} / " if rows["minority"].notna().any() else ""
    return f"{minority}{rows['overall'].mean():.3f}"


def planted(data):
    if data.empty:
        return []
    rows, found = [], []
    for setting in SETTINGS:
        own = data[data.setting == setting]
        if own.empty:
            continue
        cells = [both(own[own.method == m]) if (own.method == m).any() else "–" for m in METHODS]
        cells[3] = f"**{cells[3]}**"
        rows.append([setting, *cells, TARGETS.get(setting, "")])
        repair = own[own.method == "repair"]
        share = f"{(repair.jaccard >= 0.5).mean():.0%}" if repair.minority.notna().any() else "–"
        cox = own[own.method == "Cox"].set_index("seed")
        rest = repair.set_index("seed").rest - cox.rest
        found.append(
            [
                setting,
                share,
                f"{(repair.repairs > 0).mean():.0%}",
                f"{repair.repairs.mean():.1f}",
                mean_se(repair.minority),
                mean_se(repair.overall),
                mean_se(rest),
            ]
        )
    seeds = data.seed.nunique()
    return [
        "## Planted groups",
        "",
        f"Minority gain / overall gain, {seeds} seeds. `knows the group` is Cox with the group as a column and "
        "effects of its own: the upper limit of any method. `boosted trees` are Poisson trees of the Cox kind. "
        "The default is `make_hidden_minority`: 4,000 "
        "patients, 10 features, and 15 % whose effects differ, behind one threshold. The last "
        "settings are those where "
        "the method is expected to fail.",
        "",
        *table(["setting", *METHODS, "target"], rows),
        "Found: one of the rules, its opposite, or all rules together overlap with the planted group "
        "by at least half "
        "(Jaccard). Rest: the gain of everyone else over Cox's.",
        "",
        *write_table(
            "repair_found",
            ["setting", "found", "any repair", "repairs", "minority", "overall", "rest over Cox"],
            found,
        ),
    ]


def nulls(data):
    if data.empty:
        return []
    rows = []
    for family in FAMILIES:
        own = data[data.setting == family]
        if own.empty:
            continue
        false = int((own.repairs > 0).sum())
        largest = own.largest_e.max()
        rows.append(
            [
                family,
                f"{len(own):,}",
                str(false),
                f"{false / len(own):.1%}",
                "–" if np.isnan(largest) else f"{largest:.3g}",
            ]
        )
    total = int((data.repairs > 0).sum())
    return [
        "## A Cox model that is right",
        "",
        f"Nothing should be repaired: {total} of {len(data):,} runs were repaired. The e-value is computed only "
        "for attempts that passed all other tests; *largest e* is the largest of these.",
        "",
        *table(["patients", "runs", "false repairs", "share", "largest e"], rows),
    ]


def frozen(data):
    if data.empty:
        return []
    rows = []
    for setting in FROZEN[:4]:
        own = data[data.setting == setting]
        if own.empty:
            continue
        es = [own[f"e_{kind}"] for kind in ("everyone", "effects", "level")]
        right = setting.startswith("right")
        rows.append(
            [
                setting,
                f"{len(own):,}",
                f"{int((own.recalibrated > 0).sum()):,}",
                f"{int((own.repairs > 0).sum()):,}",
                " / ".join(f"{e.mean():.2f}" for e in es) if right else "–",
                " / ".join(f"{e.max():.1f}" for e in es) if right else "–",
            ]
        )
    places = []
    for setting in FROZEN[4:]:
        for method in ("as it came", "repaired", "Cox fitted here"):
            own = data[(data.setting == setting) & (data.method == method)]
            if not own.empty:
                places.append([setting, method, mean_se(own.minority), mean_se(own.overall)])
    return [
        "## Frozen models",
        "",
        "Predictions of 600 patients. If the model is right, the theorem says that e has mean at most 1 (an attempt "
        "that was not made counts as 1), and that at most 5 % of runs have a false repair of each kind. *Off for "
        "everybody*: the level is twice as high as it should be, or the slope half. Then a recalibration is right, "
        "and a repaired group is false.",
        "",
        *table(
            [
                "model",
                "runs",
                "recalibrated",
                "groups named",
                "mean e (everyone / effects / level)",
                "largest e",
            ],
            rows,
        ),
        "Trained in one place on 4,000 patients without a minority, repaired with 2,000 patients of "
        "another place where 15 % "
        "follow other effects (or nobody does):",
        "",
        *table(["place", "model", "minority gain", "overall gain"], places),
    ]


def sizes(data):
    if data.empty:
        return []
    rows = []
    for n, rho in SIZES:
        own = data[(data.setting == f"{n}") & (data.variant == f"{rho}")]
        if len(own):
            found = (own.jaccard >= 0.5).mean()
            rows.append([f"{n:,}", f"{rho:g}", f"{found:.0%}", f"{own.detectable.mean():.2f}"])
    return [
        "## What size of error is found",
        "",
        "A tenth of the patients have more events than their covariates give. Where nothing is "
        "found, `status_` names the size "
        "in the last column.",
        "",
        *table(["patients", "times as many events", "found", "said to be found"], rows),
    ]


def ablations(data):
    if data.empty:
        return []
    rows = []
    for variant in ABLATIONS:
        own = data[data.variant == variant]
        cells = []
        for setting in ABLATED:
            one = own[own.setting == setting]
            if setting.startswith("no group"):
                cells.append(f"{int((one.repairs > 0).sum())} of {len(one)}")
            else:
                cells.append(f"{both(one)} ({(one.jaccard >= 0.5).mean():.0%})")
        rows.append([variant, *cells])
    return [
        "## What each part is worth",
        "",
        "Minority gain / overall gain (share of groups found); where there is no group, runs with a repair.",
        "",
        *write_table("repair_variants", ["variant", *ABLATED], rows),
    ]


def bases(data):
    if data.empty:
        return []
    rows = []
    for setting in ON_BASES:
        for base in BASES:
            own = data[(data.setting == setting) & (data.variant == base)]
            if own.empty:
                continue
            before, after = own[own.method == base], own[own.method == f"{base}, repaired"]
            rows.append(
                [
                    setting,
                    base,
                    both(before),
                    both(after),
                    f"{(after.repairs > 0).mean():.0%}",
                    f"{(after.recalibrated > 0).mean():.0%}",
                ]
            )
    return [
        "## Other models as the base",
        "",
        "Minority gain / overall gain. A flexible model that is itself wrong is repaired, which is "
        "not the same as finding a "
        "minority: so repairs without a group are no surprise here.",
        "",
        *table(["setting", "base", "before", "repaired", "any group", "recalibrated"], rows),
    ]


if __name__ == "__main__":
    write(sys.argv[1])
