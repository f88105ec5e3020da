// On every page: figures in the page's language, rows chosen by key, and the keys that lead elsewhere.
"use strict";

document.documentElement.classList.add("scripted");

const { point, thousands } = document.documentElement.dataset;

// A figure as the page writes it, with this many decimals.
function figure(value, places = 0) {
  const [whole, part] = value.toFixed(places).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, thousands);
  return part ? grouped + point + part : grouped;
}

const chosen = () => document.querySelector('tr[aria-selected="true"]');

function choose(row) {
  chosen()?.removeAttribute("aria-selected");
  if (!row) return;
  row.setAttribute("aria-selected", "true");
  row.scrollIntoView({ block: "nearest" });
  row.querySelector("a")?.focus({ preventScroll: true });
}

function step(by) {
  const rows = [...document.querySelectorAll("table.rows tbody tr:has(a)")];
  const at = rows.indexOf(chosen());
  choose(rows[Math.min(rows.length - 1, Math.max(0, at + by))]);
}

const typing = (target) => target.closest("input, textarea, select, dialog, .editor-host") !== null;
// Whether a key is a command: pressed alone, and not into a field.
const commands = (event) => !(event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || typing(event.target));
let going = false;

document.addEventListener("keydown", (event) => {
  if (!commands(event)) return;
  const { key } = event;
  if (going) {
    going = false;
    for (const link of document.querySelectorAll("nav [data-go]")) if (link.dataset.go === key) link.click();
  } else if (key === "g") going = true;
  else if (key === "j") step(1);
  else if (key === "k") step(-1);
  else if (key === "?") document.getElementById("keys").showModal();
  else if (key === "/") {
    const search = document.getElementById("search");
    if (search) search.focus();
    else location.href = "/console/payments";
  } else return;
  event.preventDefault();
});

// The page Now replaces itself, but not while it is hidden or somebody works in it.
document.addEventListener("htmx:before:request", (event) => {
  const fresh = document.getElementById("now");
  if (event.target !== fresh) return;
  const inUse = fresh.contains(document.activeElement) || fresh.querySelector("details[open]");
  if (document.hidden || inUse) event.preventDefault();
});
