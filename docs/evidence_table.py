"""The table of ``guide/what_to_use.md``, made of the tables that the evidence pages hold.

After a page of evidence has changed, ``python docs/evidence_table.py`` writes it; a test fails until then.
"""

import re
from pathlib import Path

DOCS = Path(__file__).parent
PAGE = DOCS / "guide" / "what_to_use.md"
BETWEEN = re.compile(r"(<!-- evidence -->\n).*?(<!-- end of evidence -->)", re.DOTALL)
# What the benchmark calls a method, and the column of the planted groups that it has, if any.
METHODS = {
    "Cox": "Cox",
    "find and repair": "repair",
    "Cox with interactions": "",
    "boosted trees": "boosted trees",
    "find and repair on trees": "",
    "DeepSurv": "",
    "random survival forest": "",
    "DRO-COX (tight, recalibrated)": "",
    "DRO-COX (tight)": "",
    "DRO-COX (paper)": "",
    "SubgroupRobustCox": "SubgroupRobust",
    "GroupDROCox (told)": "",
    "RegularizedCox": "",
    "ARL": "",
    "JTT": "",
    "DORO": "",
}
HEADER = (
    "method",
    "real data: gain less Cox's",
    "real data: gain of the worst 15 % less Cox's",
    "datasets better / worse than Cox",
    "planted group: its gain / everybody's",
)


def cells(page: str, heading: str) -> dict[str, dict[str, str]]:
    """The first table below a heading, by its first column and its header."""
    text = (DOCS / page).read_text(encoding="utf-8").split(f"\n{heading}", 1)[1]
    lines = text[text.index("\n|") + 1 :].split("\n\n", 1)[0].splitlines()
    rows = [[cell.strip().strip("*") for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(rows[0], row, strict=False)) for row in rows[2:]}


def table() -> str:
    """The table in Markdown; what a page does not hold is a dash."""
    gain, worst = (cells("benchmark.md", heading) for heading in ("### Gain:", "### Worst 15 % gain:"))
    planted = cells("repair.md", "## Planted groups").get("default", {})
    rows = [HEADER, ("---",) * len(HEADER)]
    for method, column in METHODS.items():
        own = gain.get(method, {})
        counts = f"{own['better']} / {own['worse']}" if own else "–"
        plain = "0" if method == "Cox" else "–"
        rows.append(
            (
                method,
                own.get("mean difference", plain),
                worst.get(method, {}).get("mean difference", plain),
                counts,
                planted.get(column, "–"),
            )
        )
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def refreshed() -> str:
    """The page with the table in it."""
    page = PAGE.read_text(encoding="utf-8")
    return BETWEEN.sub(lambda found: f"{found[1]}{table()}{found[2]}", page)


if __name__ == "__main__":
    PAGE.write_text(refreshed(), encoding="utf-8")
