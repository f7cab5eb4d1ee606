// Draws the panels of a dashboard. Values were written by models and by whoever writes to them, so each
// becomes text, never HTML.
"use strict";

const LOOK = {
  background: null,
  view: { stroke: null },
  font: "Helvetica, Arial, sans-serif",
  axis: { labelFontSize: 11, titleFontSize: 11, titleFontWeight: "normal", labelColor: "#48505c",
    titleColor: "#6a737d", gridColor: "#eceff2", domainColor: "#cfd5db", tickColor: "#cfd5db", labelLimit: 170 },
  axisQuantitative: { tickMinStep: 1, tickCount: 5, format: "~s" },
  legend: { labelFontSize: 11, labelColor: "#48505c", symbolType: "square" },
  bar: { cornerRadius: 1 },
};

function say(place, text, kind) {
  const said = document.createElement("p");
  said.className = kind;
  said.textContent = text;
  place.replaceChildren(said);
}

function drawMetric(place, panel, rows) {
  const value = rows[0][panel.display.field];
  const figure = typeof value === "number" ? value.toLocaleString("en") : (value ?? "none");
  place.textContent = `${figure}${panel.display.suffix ?? ""}`;
}

// Whoever wrote a rule named it, as long as they liked.
const NAMES = new Set(["rule", "tool"]);

function cell(column, value) {
  const made = document.createElement("td");
  const text = value === null ? "" : String(value);
  if (column !== "why") made.className = NAMES.has(column) ? "name" : "short";
  if (column === "run") {
    const link = document.createElement("a");
    link.href = `/ledger/timeline?${new URLSearchParams({ run_id: text })}`;
    link.textContent = `…${text.slice(-6)}`;
    made.append(link);
  } else {
    made.textContent = text;
  }
  return made;
}

function drawTable(place, panel, rows) {
  const columns = Object.keys(rows[0]);
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  for (const column of columns) {
    const title = document.createElement("th");
    title.textContent = column;
    head.append(title);
  }
  const body = table.createTBody();
  for (const row of rows) body.insertRow().append(...columns.map((column) => cell(column, row[column])));
  place.replaceChildren(table);
}

async function drawChart(place, panel, rows) {
  const spec = {
    $schema: "https://vega.github.io/schema/vega-lite/v5.json",
    description: panel.title,
    width: "container",
    height: panel.height ?? 210,
    autosize: { type: "fit", contains: "padding" },
    config: LOOK,
    data: { values: rows },
    ...panel.display,
  };
  await vegaEmbed(place, spec, { actions: false, renderer: "svg" });
}

const DRAW = { metric: drawMetric, table: drawTable, "vega-lite": drawChart };

async function draw(place, panel) {
  try {
    const asked = new URLSearchParams({ sql: panel.query, _shape: "objects" });
    const answer = await fetch(`/${panel.db}.json?${asked}`);
    const data = await answer.json();
    if (!answer.ok) say(place, data.title ?? data.error, "failed");
    else if (!data.rows.length) say(place, "None.", "none");
    else await DRAW[panel.library](place, panel, data.rows);
  } catch (error) {
    say(place, `This could not be drawn (${error.message}).`, "failed");
  }
}

async function drawAll() {
  const panels = JSON.parse(document.getElementById("panels").textContent);
  const places = [...document.querySelectorAll("[data-panel]")];
  await Promise.all(places.map((place) => draw(place, panels[place.dataset.panel])));
  document.body.dataset.drawn = "true";
}

drawAll();
