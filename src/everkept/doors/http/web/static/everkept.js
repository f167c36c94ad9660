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

const GO = { o: "/", w: "/work", m: "/subjects", t: "/threads", s: "/sessions", a: "/ask", p: "/pages", r: "/proposals", u: "/usage" };
let waiting = false;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const project = new URLSearchParams(location.search).get("project");
  const to = (path) => (location.href = project ? `${path}?project=${encodeURIComponent(project)}` : path);
  if (waiting && GO[event.key]) to(GO[event.key]);
  else if (event.key === "/") { event.preventDefault(); to("/ask"); }
  else if (event.key === "?") document.getElementById("keys").showModal();
  waiting = event.key === "g";
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
  const ink = resolved("--quiet"), edge = resolved("--edge");
  const lines = [resolved("--accent"), resolved("--warn"), resolved("--good")];
  for (const place of places) {
    const series = place.dataset.series.split(" ");
    const data = [columns.at, ...series.map((name) => columns[name])];
    const axis = { stroke: ink, grid: { stroke: edge, width: 1 }, ticks: { stroke: edge, width: 1 } };
    const options = {
      width: place.clientWidth, height: 180, legend: { live: false }, scales: { x: { range: (u, first, last) => [Math.min(first, last - SHOWN_S), last] }, y: { range: (u, low, high) => [0, Math.max(high || 0, 1) * 1.05] } },
      axes: [axis, { ...axis, size: 55 }],
      series: [{}, ...series.map((name, n) => ({ label: names[name], stroke: lines[n], width: 2, spanGaps: false, points: { show: columns.at.length < 3 } }))],
    };
    if (place.plot) { place.plot.setData(data); continue; }
    place.textContent = "";
    place.plot = new uPlot(options, data, place);
    new ResizeObserver(() => place.plot.setSize({ width: place.clientWidth, height: 180 })).observe(place);
  }
}
addEventListener("DOMContentLoaded", () => { draw(); if (document.querySelector(".chart")) setInterval(draw, 10000); });
