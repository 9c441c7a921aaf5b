"use strict";
(() => {
  const report = JSON.parse(document.getElementById("tables").textContent);
  const tip = document.getElementById("tip");
  const said = document.getElementById("said");

  /* Charts: pointing and the arrow keys read values */
  function point(chart, mark, aloud) {
    const { x, y, text } = mark.dataset;
    const cross = chart.querySelector(".cross");
    const { height } = chart.viewBox.baseVal;
    cross.setAttribute("d", chart.dataset.nearest === "x" ? `M${x} 26V${height - 42}` : "");
    cross.removeAttribute("hidden");
    const at = new DOMPoint(Number(x), Number(y)).matrixTransform(chart.getScreenCTM());
    tip.textContent = text;
    tip.hidden = false;
    const { width, height: tall } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(at.x - width / 2, window.innerWidth - width - 8))}px`;
    tip.style.top = `${at.y - tall - 14 > 8 ? at.y - tall - 14 : at.y + 18}px`;
    chart.reading = mark;
    if (aloud) said.textContent = text;
  }
  function leave(chart) {
    tip.hidden = true;
    chart.querySelector(".cross").setAttribute("hidden", "");
  }
  for (const chart of document.querySelectorAll("svg[data-nearest]")) {
    const marks = [...chart.querySelectorAll(".mark")];
    if (!marks.length) continue;
    const far = (mark, at) => {
      const across = Math.abs(mark.dataset.x - at.x);
      return chart.dataset.nearest === "x" ? across : Math.hypot(across, mark.dataset.y - at.y);
    };
    const read = (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse());
      point(chart, marks.reduce((best, mark) => (far(mark, at) < far(best, at) ? mark : best)), false);
    };
    chart.addEventListener("pointermove", read);
    chart.addEventListener("pointerdown", read);
    /* A finger leaves as soon as it is lifted: what it read stays until the next touch elsewhere. */
    chart.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && leave(chart));
    chart.addEventListener("blur", () => leave(chart));
    chart.addEventListener("keydown", (event) => {
      const now = marks.indexOf(chart.reading);
      const last = marks.length - 1;
      const to = { ArrowRight: now + 1, ArrowLeft: now < 0 ? last : now - 1, Home: 0, End: last }[event.key];
      if (event.key === "Escape") leave(chart);
      if (to === undefined) return;
      event.preventDefault();
      point(chart, marks[Math.max(0, Math.min(to, last))], true);
    });
  }

  /* Paper cannot be unfolded */
  window.addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("details")) folded.open = true;
  });

  window.addEventListener("scroll", () => (tip.hidden = true), { passive: true });

  /* Downloads, made from the tables inside this file */
  function csv(table) {
    const cell = (value) => {
      if (value === null || value === undefined) return "";
      let text = String(value);
      if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return [table.columns, ...table.rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
  }
  function download(name, type, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  for (const button of document.querySelectorAll("[data-table]")) {
    button.addEventListener("click", () => {
      const { table: key, format } = button.dataset;
      const table = report.tables[key];
      const named = (row) => Object.fromEntries(row.map((value, k) => [table.columns[k], value]));
      if (format === "csv") download(`${key}.csv`, "text/csv", csv(table));
      else download(`${key}.json`, "application/json", JSON.stringify(table.rows.map(named), null, 1));
    });
  }
  document
    .querySelector("[data-everything]")
    .addEventListener("click", () => download("audit.json", "application/json", JSON.stringify(report, null, 1)));
})();
