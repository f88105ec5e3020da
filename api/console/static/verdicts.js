// Verdicts by key: on a payment's page, and row by row on the review page.
"use strict";

const verdicts = { f: "fraud", l: "legitimate", u: "unsure" };
// Rows judged on this page, the latest last, each with where it was.
const judged = [];

// A row is removed as soon as it is judged, so that the next key is for the next row. It comes back if
// the verdict is refused or taken back.
function judge(verdict) {
  const button = document.querySelector(`.verdicts button[value="${verdict}"]`);
  if (button) return button.click();
  const row = chosen();
  const held = row?.closest("[data-verdicts]");
  if (!held) return;
  const after = row.nextElementSibling;
  const next = after ?? row.previousElementSibling;
  row.remove();
  choose(next);
  const done = { held, row, after };
  judged.push(done);
  send(row, verdict).then((kept) => kept || giveBack(done));
}

// What is sent about one row is sent in order.
function send(row, verdict) {
  row.sent = row.sent ? row.sent.then(() => post(row.dataset.id, verdict)) : post(row.dataset.id, verdict);
  return row.sent;
}

async function post(id, verdict) {
  const address = `/console/review/${encodeURIComponent(id)}`;
  const body = new URLSearchParams({ label: verdict });
  try {
    const answer = await fetch(address, { method: "POST", body, keepalive: true });
    return answer.status === 204;
  } catch {
    return false;
  }
}

function putBack({ held, row, after }) {
  row.removeAttribute("aria-selected");
  held.tBodies[0].insertBefore(row, after?.isConnected ? after : null);
}

function giveBack(done) {
  const at = judged.indexOf(done);
  // It may have been taken back already.
  if (at >= 0) judged.splice(at, 1);
  done.row.classList.add("refused");
  putBack(done);
  if (!chosen()) choose(done.row);
  document.getElementById("refused").textContent = done.held.dataset.refused;
}

async function takeBack() {
  const button = document.querySelector("button[data-undo]");
  if (button) return button.click();
  const done = judged.pop();
  if (!done) return;
  putBack(done);
  choose(done.row);
  if (await send(done.row, "")) return;
  done.row.classList.add("refused");
  document.getElementById("refused").textContent = done.held.dataset.stands;
}

document.addEventListener("keydown", (event) => {
  if (!commands(event)) return;
  if (event.key in verdicts) judge(verdicts[event.key]);
  else if (event.key === "z") takeBack();
  else return;
  event.preventDefault();
});
