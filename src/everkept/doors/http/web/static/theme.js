"use strict";
// Before anything is drawn, so that the page never flashes in the other colours.
const chosen = localStorage.getItem("everkept-theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
document.documentElement.dataset.scripts = "";  // what needs scripts is shown, and what they fold is folded
