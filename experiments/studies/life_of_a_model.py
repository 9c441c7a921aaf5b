"""The tables, printed answers and pictures of the guide "The life of a model".

    python -m experiments.studies.life_of_a_model

Patients are simulated: women with a high marker die three times as fast as the other columns say, which no linear model
knows. The model is used from 2020 on; from July 2022 on women die 1.8 times as fast. The commands are those of
docs/guide/life_of_a_model.md, in its order; what they print, as far as the guide shows it, and draw goes to
docs/_static/life_of_a_model, pages as pictures of their first screen (Chromium makes them).
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from drosurv.presentation import DAYS

GUIDE = Path("docs/guide/life_of_a_model.md")
STATIC = Path("docs/_static/life_of_a_model")
TRAINED, USED, YEARS = 6000, 1200, 5
# Characters of a line of the site.
WIDTH = 84
CHANGE = pd.Timestamp("2022-07-01")


def patients(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the columns of n patients, and their hazards per month."""
    table = pd.DataFrame(
        {
            "age": rng.normal(66, 10, n).clip(30, 95).round(),
            "sex": rng.choice(["f", "m"], n),
            "marker": rng.normal(0, 1, n).round(2),
            "diabetes": rng.choice(["no", "yes"], n, p=[0.75, 0.25]),
        }
    )
    log_risk = 0.04 * (table["age"] - 66) + 0.3 * table["marker"] + 0.3 * (table["diabetes"] == "yes")
    hidden = (table["sex"] == "f") & (table["marker"] > 0.5)
    return table, (0.015 * np.exp(log_risk) * np.where(hidden, 3.0, 1.0)).to_numpy()


def write_tables(folder: Path) -> None:
    """Write patients.csv, to train and test on, and log.csv of the patients in use."""
    rng = np.random.default_rng(0)
    table, hazard = patients(TRAINED, rng)
    time, end = rng.exponential(size=TRAINED) / hazard, rng.uniform(6, 72, TRAINED)
    outcome = {"months": np.minimum(time, end).round(1).clip(0.1), "died": (time <= end).astype(int)}
    table.assign(id=np.arange(1, TRAINED + 1), **outcome).to_csv(folder / "patients.csv", index=False)
    table, hazard = patients(USED, rng)
    admitted = pd.Timestamp("2020-01-01") + pd.to_timedelta(
        np.sort(rng.integers(0, YEARS * 365, USED)), unit="D"
    )
    change = np.maximum((CHANGE - admitted).days / DAYS["months"], 0.0)
    faster = np.where(table["sex"] == "f", 1.8, 1.0)
    reached = rng.exponential(size=USED) / hazard
    time = np.where(reached <= change, reached, change + (reached - change) / faster)
    today = pd.Timestamp("2024-12-31")
    died = admitted + pd.to_timedelta(np.ceil(time * DAYS["months"]), unit="D")
    table.assign(
        admitted=admitted.strftime("%Y-%m-%d"),
        last_seen=died.where(died <= today, today).strftime("%Y-%m-%d"),
        died=(died <= today).astype(int),
    ).to_csv(folder / "log.csv", index=False)


def commands() -> list[list[str]]:
    """Return the commands of the guide, as words."""
    blocks = re.findall(r"^```console\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("drosurv ")]


def picture(page: Path, to: Path) -> None:
    """Write a picture of the first screen of a page."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert browser is not None, "Chromium makes the pictures of pages"
    # The charts of the monitor are further down.
    window = "1200,1420" if page.stem == "monitor" else "1000,760"
    size = [f"--window-size={window}", "--hide-scrollbars", f"--screenshot={to.resolve()}"]
    subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", *size, page.resolve().as_uri()],
        check=True,
        capture_output=True,
    )
    # Few colours make a small file.
    Image.open(to).convert("RGB").quantize(64).save(to, optimize=True)


def main() -> None:
    """Write the tables, run the commands of the guide, and keep what they print and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--folder", type=Path, help="Folder of the tables and pages; a temporary one by default."
    )
    folder = parser.parse_args().folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    STATIC.mkdir(parents=True, exist_ok=True)
    write_tables(folder)
    for words in commands():
        print("drosurv", *words, flush=True)
        result = subprocess.run(
            [sys.executable, "-m", "drosurv", *words, "--force"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode != 0:
            raise SystemExit(result.stderr)
        printed = STATIC / f"{words[0]}.txt"
        if printed.name in GUIDE.read_text():
            lines = (result.stderr + result.stdout).splitlines()
            # Rows of tables stay whole.
            shown = [
                part
                for line in lines
                for part in ([line] if "  " in line else textwrap.wrap(line, WIDTH) or [""])
            ]
            printed.write_text("\n".join(line.rstrip() for line in shown).strip() + "\n")
    for page in sorted(folder.glob("*.html")):
        picture(page, STATIC / f"{page.stem}.png")
    for drawn in sorted(folder.glob("*.svg")):
        shutil.copy(drawn, STATIC / drawn.name)


if __name__ == "__main__":
    main()
