// The live feed of the payments page: new payments are added on top, and the oldest rows are removed,
// but the row in focus stays where it is on the screen. The feed pauses while the page is hidden.
"use strict";

const shownAtMost = 200;
const alikeWithinMs = 5000;
const alikeAtMost = 50;
const againAfterMs = 3000;

function wideRow(table, ...content) {
  const row = document.createElement("tr");
  const cell = row.insertCell();
  cell.colSpan = table.tHead.rows[0].cells.length;
  cell.className = "gap";
  cell.append(...content);
  return row;
}

// Payments that are alike within some seconds are folded behind the first of them, which shows how many
// they are.
function fold(table, lead, row) {
  if (!lead.fold) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.setAttribute("aria-expanded", "false");
    const own = wideRow(table, button);
    lead.fold = { button, row: own, behind: [] };
    lead.after(own);
    button.addEventListener("click", () => {
      const opened = button.getAttribute("aria-expanded") === "false";
      button.setAttribute("aria-expanded", `${opened}`);
      if (opened) own.after(...lead.fold.behind);
      else for (const each of lead.fold.behind) each.remove();
    });
  }
  const { button, behind } = lead.fold;
  behind.unshift(row);
  button.textContent = table.dataset.folded.replace("#", figure(behind.length));
  if (button.getAttribute("aria-expanded") === "true") lead.fold.row.after(row);
}

function follow(table, box) {
  const body = table.tBodies[0];
  const known = new Set([...body.rows].map((row) => row.dataset.id));
  const leads = new Map();
  let shown = [...body.rows];
  let place = table.dataset.place;
  let source = null;
  let again = 0;
  const gone = wideRow(table, table.dataset.stopped);
  let come = [];
  const arrived = (row) => Date.parse(row.querySelector("time").dateTime);
  // The row to fold this one behind; none where it leads others itself.
  const leadOf = (row) => {
    const { alike } = row.dataset;
    if (!alike) return null;
    const lead = leads.get(alike);
    const isNear = lead && arrived(row) - arrived(lead) <= alikeWithinMs;
    if (isNear && (lead.fold?.behind.length ?? 0) < alikeAtMost) return lead;
    leads.set(alike, row);
    return null;
  };
  const settleIn = () => {
    const read = document.activeElement.closest("tbody tr") ?? chosen();
    const top = read?.getBoundingClientRect().top;
    for (const row of come) {
      const lead = leadOf(row);
      if (lead) {
        fold(table, lead, row);
        continue;
      }
      body.prepend(row);
      shown.unshift(row);
    }
    come = [];
    for (const row of shown.slice(shownAtMost)) {
      const own = [row, ...(row.fold ? [row.fold.row, ...row.fold.behind] : [])];
      if (own.includes(read)) continue;
      for (const each of own) {
        each.remove();
        known.delete(each.dataset.id);
      }
      if (leads.get(row.dataset.alike) === row) leads.delete(row.dataset.alike);
    }
    shown = shown.filter((row) => row.isConnected);
    if (read) scrollBy(0, read.getBoundingClientRect().top - top);
  };
  const join = (row) => {
    row.classList.add("fresh");
    if (come.push(row) === 1) requestAnimationFrame(settleIn);
  };
  const start = () => {
    clearTimeout(again);
    const address = new URL(table.dataset.live, location.href);
    address.searchParams.set("after", place);
    source = new EventSource(address);
    source.addEventListener("open", () => {
      gone.remove();
      table.dataset.following = "";
    });
    source.addEventListener("error", () => {
      if (source?.readyState !== EventSource.CLOSED) return; // it connects again by itself
      stop();
      // A service that starts refuses at first, and then goes on from the last place.
      body.prepend(gone);
      again = setTimeout(start, againAfterMs);
    });
    source.addEventListener("payment", (event) => {
      place = event.lastEventId;
      const holder = document.createElement("tbody");
      holder.innerHTML = event.data;
      const row = holder.rows[0];
      if (known.has(row.dataset.id)) return;
      known.add(row.dataset.id);
      join(row);
    });
    source.addEventListener("gap", (event) => {
      const count = figure(JSON.parse(event.data).skipped);
      join(wideRow(table, table.dataset.more.replace("#", count)));
    });
  };
  const stop = () => {
    clearTimeout(again);
    gone.remove();
    source?.close();
    source = null;
    delete table.dataset.following;
  };
  const settle = () => (box.checked && !document.hidden ? source ?? start() : stop());
  box.addEventListener("change", settle);
  document.addEventListener("visibilitychange", settle);
}

const table = document.querySelector("table[data-live]");
const box = document.getElementById("live");
if (table && box) follow(table, box);
