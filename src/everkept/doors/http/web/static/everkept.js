"use strict";

// ---- colours, and the menu of a narrow screen

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-act]");
  if (!button) return;
  if (button.dataset.act === "theme") {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const root = document.documentElement;
    const now = root.dataset.theme || (dark ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    localStorage.setItem("everkept-theme", root.dataset.theme);
  }
  if (button.dataset.act === "menu") {
    const open = button.closest(".side").classList.toggle("open");
    button.setAttribute("aria-expanded", String(open));
  }
});

// ---- keys: "/" asks, "g" and a letter go somewhere, "?" tells

const placeOf = (key) => document.querySelector(`#places a[data-key="${CSS.escape(key)}"]`);
let waiting = false;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  if (waiting && placeOf(event.key)) placeOf(event.key).click();
  else if (event.key === "/") { event.preventDefault(); placeOf("a").click(); }
  else if (event.key === "?") document.getElementById("keys").showModal();
  waiting = event.key === "g";
});
addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll("#places a")) {
    const keys = document.createElement("dt"), name = document.createElement("dd");
    keys.innerHTML = "<kbd>g</kbd> <kbd></kbd>";
    keys.lastChild.textContent = place.dataset.key;
    name.textContent = place.textContent;
    document.querySelector("#keys dl").append(keys, name);
  }
});

// ---- on a narrow screen the cells of a table tell the names of their columns

function nameCells(within) {
  for (const table of within.querySelectorAll(".scroll table")) {
    const names = [...table.querySelectorAll("thead th")].map((head) => head.textContent);
    for (const row of table.tBodies[0]?.rows ?? []) {
      if (row.cells.length === names.length) [...row.cells].forEach((cell, n) => { if (names[n]) cell.dataset.column = names[n]; });
    }
  }
}
addEventListener("DOMContentLoaded", () => nameCells(document));
document.addEventListener("htmx:sseMessage", (event) => nameCells(event.target));

// ---- a day can also be slid to: from the first that is known of to today, which is no day at all

const DAY_MS = 86400000;

function addSlider(day) {
  const first = Date.parse(day.dataset.since), last = Math.floor((Date.now() - first) / DAY_MS);
  const slider = document.createElement("input");
  slider.type = "range";
  slider.max = last;
  slider.value = day.value ? Math.round((Date.parse(day.value) - first) / DAY_MS) : last;
  slider.setAttribute("aria-label", day.dataset.slider);
  slider.addEventListener("input", () => {
    day.value = Number(slider.value) === last ? "" : new Date(first + slider.value * DAY_MS).toISOString().slice(0, 10);
  });
  slider.addEventListener("change", () => day.form.requestSubmit());
  day.closest("label").after(slider);
}
addEventListener("DOMContentLoaded", () => document.querySelectorAll("input[data-slider]").forEach(addSlider));

// ---- charts

const SHOWN_S = 600; // at least

const names = { messages: "messages", due: "due", armed: "armed", running: "running", failed: "failures in the last hour", p50_s: "p50", p95_s: "p95" };

function resolved(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

async function draw() {
  const places = document.querySelectorAll(".chart");
  if (!places.length || !window.uPlot) return;
  const answer = await fetch(`/samples${location.search}`);
  if (!answer.ok) return;
  const columns = await answer.json();
  if (columns.at.length === 1) for (const name in columns) columns[name].unshift(name === "at" ? columns.at[0] - SHOWN_S : null); // one point has no scale
  const ink = resolved("--quiet"), edge = resolved("--edge");
  const lines = [resolved("--accent"), resolved("--warn"), resolved("--good")];
  for (const place of places) {
    const series = place.dataset.series.split(" ");
    const data = [columns.at, ...series.map((name) => columns[name])];
    const axis = { stroke: ink, grid: { stroke: edge, width: 1 }, ticks: { stroke: edge, width: 1 } };
    const options = {
      width: place.clientWidth, height: 180, legend: { live: false }, scales: { x: { range: (u, first, last) => [Math.min(first, last - SHOWN_S), last] }, y: { range: (u, low, high) => [0, Math.max(high || 0, 1) * 1.05] } },
      axes: [axis, { ...axis, size: 55 }],
      series: [{}, ...series.map((name, n) => ({ label: names[name], stroke: lines[n], width: 2, spanGaps: false, points: { show: columns.at.length < 4 } }))],
    };
    if (place.plot) { place.plot.setData(data); continue; }
    place.textContent = "";
    place.plot = new uPlot(options, data, place);
    new ResizeObserver(() => place.plot.setSize({ width: place.clientWidth, height: 180 })).observe(place);
  }
}
addEventListener("DOMContentLoaded", () => { draw(); if (document.querySelector(".chart")) setInterval(draw, 10000); });
