"""The tables of the subgroup-robust study, from its finished units, written into its page part by part.

python -m experiments.studies.subgroup_robust_document results
"""

import sys

from experiments.studies.pages import mean_se, table, write_part
from experiments.studies.subgroup_robust import (
    ALPHAS,
    BASE,
    CHOICE,
    MIN_GROUPS,
    MIN_GROUPS_OF,
    NEIGHBORS,
    REAL,
    SETTINGS,
    VARIED,
    load,
    setting_name,
)


def write(folder):
    """Write the parts of the page of which there are finished units."""
    data = load(folder)
    for part, tables in (("a", synthetic), ("b", real), ("c", null), ("d", settings)):
        own = data[data.part == part]
        if len(own):
            write_part(
                "subgroup_robust_tables.md",
                f"python -m experiments.studies.subgroup_robust --part {part}",
                "\n".join(tables(own)).rstrip(),
            )


def picked(data, **setting):
    for name, value in setting.items():
        data = data[data[name] == value]
    return data


def seeds_of(data, word="seeds"):
    """How many seeds each method has, in words; a method may have fewer of the largest data."""
    by = ["method", *(["n"] if "n" in data and data.n.notna().all() else [])]
    counts = data.groupby(by, sort=False).seed.nunique()
    most = counts.max()
    fewer = []
    for place, count in counts[counts < most].items():
        method, *size = place if isinstance(place, tuple) else (place,)
        fewer.append(", ".join([method, *(f"n = {int(n):,}" for n in size)]) + f": {count}")
    return f"{most} {word}" + (f" ({'; '.join(fewer)})" if fewer else "") + "."


def methods_of(data):
    """The methods as the study lists them; the forest, whose units are others, after the trees."""
    found = list(data.method.unique())
    return sorted(found, key=lambda method: "knows the groups" in method)


def compared(data, columns, rows, metric):
    """A table of one metric: methods by columns, each a name and the units it is about."""
    lines = [
        [
            method,
            *(mean_se(own[(own.method == method) & (own.rows == name)][metric]) for own, name in rows),
        ]
        for method in methods_of(data)
    ]
    return table(["method", *columns], lines)


def synthetic(data):
    names = [setting_name(setting) for setting in SETTINGS]
    out = [f"Means over {seeds_of(data)}", ""]
    for rows, metric, title in (
        ("minority", "gain", "The minority's gain"),
        ("everyone", "gain", "Everybody's gain"),
        ("minority", "c", "c-index among the minority"),
        ("everyone", "c", "c-index of everybody"),
    ):
        cells = [(picked(data, **setting), rows) for setting in SETTINGS]
        out += [f"**{title}**", "", *compared(data, names, cells, metric)]
    return out


def real(data):
    out = [f"Means over {seeds_of(data, 'splits')}", ""]
    for name in REAL:
        here = data[data.data == name]
        groups = list(here.rows.unique())
        sizes = [f"{group} ({here[here.rows == group]['size'].mean():.0f})" for group in groups]
        out += [f"### {name.upper()}", ""]
        for metric, title in (("gain", "Gain"), ("c", "c-index")):
            last = len(groups) if metric == "gain" else -1
            cells = [(here, group) for group in groups[:last]]
            out += [f"**{title}**", "", *compared(here, sizes[:last], cells, metric)]
    return out


def null(data):
    sizes = sorted([BASE["n"], *VARIED["n"]])
    out = [f"Means over {seeds_of(data)}", ""]
    for metric, title in (("gain", "Gain"), ("c", "c-index")):
        cells = [(data[data.n == n], "everyone") for n in sizes]
        out += [f"**{title}**", "", *compared(data, [f"n = {n:,}" for n in sizes], cells, metric)]
    return out


def settings(data):
    out = [
        f"Minority gain / overall c-index of `SubgroupRobustCox` on the default synthetic data, {seeds_of(data)}",
        "",
    ]
    for cross_fit in (False, True):
        rows = [
            [
                str(alpha),
                *(cell(data, alpha=alpha, min_group=size, cross_fit=cross_fit) for size in MIN_GROUPS),
            ]
            for alpha in ALPHAS
        ]
        out += [f"`cross_fit={cross_fit}`", ""]
        out += table(["alpha", *(f"min_group {size}" for size in MIN_GROUPS)], rows)
    out += ["Other numbers of patients, and nearest neighbours in place of leaves, at alpha .1:", ""]
    for n, sizes in MIN_GROUPS_OF.items():
        out += table(
            ["forest", *(f"min_group {size}" for size in sizes)],
            [[f"n = {n:,}", *(cell(data, n=n, min_group=size) for size in sizes)]],
        )
    out += table(
        ["neighbours", *(f"min_group {size}" for size in NEIGHBORS)],
        [["n = 4,000", *(cell(data, kernel="neighbors", min_group=size) for size in NEIGHBORS)]],
    )
    return [*out, *cross_fitting(data), *from_held_out_patients(data)]


def cell(data, **setting):
    own = picked(data, **{**CHOICE, **setting})
    minority, everyone = own[own.rows == "minority"], own[own.rows == "everyone"]
    return f"{minority.gain.mean():+.3f} / {everyone.c.mean():.3f}"


def cross_fitting(data):
    """What cross-fitting changes, setting by setting and seed by seed."""
    index = ["alpha", "min_group", "seed"]
    own = picked(data, n=CHOICE["n"], kernel="forest")
    changes = {}
    for rows, metric in (("minority", "gain"), ("everyone", "c")):
        both = own[own.rows == rows].pivot_table(index=index, columns="cross_fit", values=metric)
        both = both.dropna()
        changes[metric] = mean_se((both[True] - both[False]).groupby("seed").mean())
    return [
        f"Over the settings of the two grids cross-fitting changes the minority's gain by {changes['gain']} and the",
        f"overall c-index by {changes['c']}, and it grows two trees for one: it is off by default.",
        "",
    ]


def from_held_out_patients(data):
    """The setting that the worst found among held-out patients point to, and what it does for the minority."""
    own = picked(data, n=CHOICE["n"], kernel="forest", cross_fit=False)
    seen = own[own.rows == "held out"]
    best = seen.loc[seen.groupby("seed").gain.idxmax(), ["seed", "alpha", "min_group"]]
    rows, gains = [], {}
    for title, chosen in (("chosen", best), ("the default", best.assign(alpha=0.1, min_group=50))):
        kept = chosen.merge(own, on=["seed", "alpha", "min_group"])
        minority, everyone = kept[kept.rows == "minority"], kept[kept.rows == "everyone"]
        rows.append([title, mean_se(minority.gain), mean_se(minority.c), mean_se(everyone.c)])
        gains[title] = minority.gain.mean()
    better = gains["chosen"] > gains["the default"]
    medians = f"alpha {best.alpha.median():g} and min_group {best.min_group.median():g}"
    return [
        "Can the data choose, without anybody knowing the group? Of the settings without cross-fitting, the one under",
        "which the worst 15 % that a forest finds among 2,000 held-out patients gain most is in the median over seeds",
        f"{medians}. It serves the minority {'better' if better else 'worse'} than the default:",
        "",
        *table(["setting", "minority gain", "minority c-index", "c-index"], rows),
        *(
            []
            if better
            else ["That default was set on data of this kind, so elsewhere it may be less hard to beat.", ""]
        ),
    ]


if __name__ == "__main__":
    write(sys.argv[1])
