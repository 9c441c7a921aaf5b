"""``drosurv demo``: a hidden group that plain Cox fails, and what can be done for it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drosurv.cli.audit import report_view
from drosurv.cli.messages import printable
from drosurv.cli.options import Json, Seed, about, command
from drosurv.cli.outputs import check_outputs, print_frame, print_json
from drosurv.presentation import group_name, written

if TYPE_CHECKING:
    import pandas as pd

    from drosurv.workflows.demo import Chapter, Story


@command
def demo(
    alpha: Annotated[
        float, about("Smallest share of patients that the robust models protect, in (0, 1].")
    ] = 0.2,
    attribute: Annotated[
        str, about("Attribute of the real patients whose groups are looked at: age or gender.")
    ] = "age",
    seed: Seed = 0,
    report: Annotated[
        Path | None, about("Also write the repaired model's report to this .html, .md or .json file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell a story in under a minute: patients that plain Cox fails, who they are, and what each remedy does.

    First on simulated patients, where the truth is known, then on FLC (7,874 people, bundled).

    Example: drosurv demo --report demo.html
    """
    from drosurv.presentation.progress import bar
    from drosurv.workflows.demo import contenders, story_report, tell

    if report is not None:
        view = report_view(report)
        check_outputs([report], [])
    with bar("drawing patients", 2 * len(contenders(alpha)) + 1) as told:
        story = tell(
            alpha=alpha,
            attribute=attribute,
            random_state=seed,
            on_model=lambda name: told(doing=name),
        )
    if report is not None:
        with bar("audit") as told:
            written = story_report(random_state=seed, on_step=lambda name, steps: told(doing=name, of=steps))
        getattr(written, view)(report)
    if as_json:
        print_json({"alpha": alpha, "hidden": _plain(story.hidden), "real": _plain(story.real)})
        return
    _show(story, attribute)
    if report is not None:
        typer.echo(printable(f"The report is in {report}."))


def _plain(part: Chapter) -> dict[str, Any]:
    return {**asdict(part), "table": part.table.to_dict("records")}


def _show(story: Story, attribute: str) -> None:
    hidden, real = story.hidden, story.real
    group = group_name(attribute, real.group)
    share, loss = hidden.n_group / hidden.n_test, hidden.number("plain Cox", "group_skill")
    typer.echo(
        f"1. A hidden group. {hidden.n_train:,} simulated patients; about {100 * share:.0f} % of them respond to one "
        "marker the other way round. No model is told.\n\n"
        f"2. Plain Cox fails them. On {hidden.n_test:,} patients kept away its c-index is "
        f"{hidden.number('plain Cox', 'c_index'):.2f} overall, but "
        f"{hidden.number('plain Cox', 'group_c_index'):.2f} in the hidden group, where its predictions are "
        f"{100 * abs(loss):.0f} % {'worse' if loss < 0 else 'better'} than those of no model at all.\n\n"
        f"3. Who they are. {_found(hidden)} (The truth is x5 > 1.04.)\n\n"
        "4. What each remedy does for them, and what it costs everybody:\n"
    )
    print_frame(_shown(hidden, "hidden group"))
    typer.echo(
        "skill: share of the error without a model that is removed, below 0 is harm; slope: 1 is right, far above 1 "
        "means\nthat differences between patients are understated.\n\n"
        f"5. Real patients. {real.data.upper()}: trained on {real.n_train:,} people, compared on {real.n_test:,} "
        f"others; {group}, {real.n_group:,} of them, is the group with plain Cox's lowest c-index. {_found(real)}\n"
    )
    print_frame(_shown(real, group))
    typer.echo(f"\n{story.advice}")


def _found(part: Chapter) -> str:
    if part.rules:
        return (
            f"Searched for whom the model is wrong, and confirmed on other patients: {'; '.join(part.rules)}."
        )
    return (
        "No group was found for whom plain Cox is wrong beyond chance, so the repaired model stays plain Cox."
    )


def _shown(part: Chapter, group: str) -> pd.DataFrame:
    """The comparison in the columns and digits that people read."""
    import pandas as pd

    table = part.table
    return pd.DataFrame(
        {
            "model": table["model"],
            f"{group}: c-index": table["group_c_index"].map("{:.3f}".format),
            "skill": [written(share, "share") for share in table["group_skill"]],
            "everybody: c-index": table["c_index"].map("{:.3f}".format),
            "skill ": [written(share, "share") for share in table["skill"]],
            "slope": table["slope"].map("{:.2f}".format),
            "seconds": table["seconds"].map("{:.1f}".format),
        }
    )
