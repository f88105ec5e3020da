// On every page: figures in the page's language, rows chosen by key, and the keys that lead elsewhere.
"use strict";

document.documentElement.classList.add("scripted");

const texts = document.documentElement.dataset;
const signIn = "/console/sign-in";

// A figure as the page writes it, with this many decimals.
function figure(value, places = 0) {
  const { point, thousands } = texts;
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
// Whether a key is a command: alone, and not into a field.
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

// A form is sent once, and says so while no answer comes. One that is refused stays as it was filled in,
// below the reason, with the field that it names. Whoever goes to another page meanwhile is not taken back.
let leaves = false;
addEventListener("beforeunload", () => { leaves = true; });
addEventListener("pageshow", () => document.querySelectorAll("form[aria-busy]").forEach(rest));
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post" || event.submitter?.hasAttribute("formaction")) return;
  if (form.ariaBusy) return event.preventDefault();
  wait(form);
  if (!form.matches("[data-kept]")) return;
  event.preventDefault();
  leaves = false;
  const body = new URLSearchParams(new FormData(form, event.submitter));
  const headers = { "toll-form": "kept" };
  const answer = await fetch(form.action, { method: "POST", body, headers }).catch(() => null);
  if (leaves) return;
  const next = answer?.headers.get("location");
  if (next) {
    if (new URL(next, location).pathname === signIn) keep(form);
    return location.assign(next);
  }
  rest(form);
  refuse(form, new DOMParser().parseFromString((await answer?.text()) ?? "", "text/html"));
});

function wait(form) {
  form.ariaBusy = "true";
  const said = told("waits hints", "status", texts.waits);
  setTimeout(() => form.ariaBusy && form.append(said), 1000);
}

function rest(form) {
  form.ariaBusy = null;
  form.querySelector(".waits")?.remove();
}

function refuse(form, page) {
  const below = form.closest(".editing") ?? form;
  if (below.previousElementSibling?.matches(".notice.error")) below.previousElementSibling.remove();
  const said = page.querySelector(".notice.error") ?? plainNotice(page.querySelector("main p")?.textContent);
  // The editor has places for what a refusal says and what its form expects from then on.
  const places = [...page.querySelectorAll("[data-renewed]")];
  for (const place of places) document.getElementById(place.id).replaceWith(place);
  if (!places.length) below.before(said);
  const field = form.elements[said.querySelector("code")?.textContent.split(".").at(-1)];
  if (field && !field.hidden) field.focus();
  else said.scrollIntoView({ block: "nearest" });
}

// A form sent after the session's end comes back as it was typed once the same person is signed in;
// nobody else sees it.
function keep(form) {
  const typed = [person(), thisPage(), form.getAttribute("action"), [...new FormData(form)]];
  sessionStorage.setItem("typed", JSON.stringify(typed));
}

function bringBack() {
  const [whose, page, action, typed] = JSON.parse(sessionStorage.getItem("typed") ?? "[]");
  if (!person() || (whose === person() && page !== thisPage())) return;
  sessionStorage.removeItem("typed");
  if (whose !== person()) return;
  const form = [...document.querySelectorAll("form[data-kept]")].find((each) => each.getAttribute("action") === action && isSame(each, typed));
  if (form) fill(form, typed);
}

// Who is signed in, as the page says; none on the page of sign-in.
function person() {
  return document.querySelector("[data-person]")?.dataset.person;
}

// Hidden fields that say what the page had seen, and so come back too.
const MOMENT = new Set(["at", "expected"]);

// Whether the form is the one that was sent: of those with one action, hidden fields tell.
function isSame(form, typed) {
  const hidden = [...form.elements].filter((field) => field.type === "hidden" && !MOMENT.has(field.name));
  return hidden.every((field) => typed.some(([name, value]) => name === field.name && value === field.value));
}

function thisPage() {
  return location.pathname + location.search;
}

function fill(form, typed) {
  for (const field of form.elements) {
    const values = typed.filter(([name]) => name === field.name);
    if (field.type === "checkbox" || field.type === "radio") field.checked = values.some(([, value]) => value === field.value);
    else if (values.length && field.type !== "file") {
      field.value = values[0][1];
      typed.splice(typed.indexOf(values[0]), 1);
    }
  }
  const folded = form.closest("details");
  if (folded) folded.open = true;
  form.scrollIntoView({ block: "nearest" });
}

function told(className, role, textContent) {
  return Object.assign(document.createElement("div"), { className, role, textContent });
}

function plainNotice(text = texts.failed) {
  return told("notice error", "alert", text);
}

// A part that does not come says so in its place, and the page Now how old it is.
document.addEventListener("htmx:before:response", (event) => {
  const { raw } = event.detail.ctx.response;
  const isOver = new URL(raw.url).pathname === signIn;
  if (raw.ok && !isOver) return;
  event.preventDefault();
  if (!isOver) return miss(event);
  const form = event.target.closest("[data-kept]");
  if (form) keep(form);
  location.reload();
});
document.addEventListener("htmx:error", miss);
let renewed = Date.now();
document.addEventListener("htmx:after:swap", (event) => {
  if (event.target.id === "now") renewed = Date.now();
});

function miss({ detail: { ctx } }) {
  const place = ctx?.target;
  if (!place?.matches || place.matches(".waiting")) return;
  const seconds = figure(Math.round((Date.now() - renewed) / 1000));
  place.querySelector(":scope > .notice.error")?.remove();
  place.prepend(plainNotice(place.id === "now" ? texts.stale.replace("#", seconds) : texts.failed));
}

// The page Now replaces itself, but not while hidden or in use.
document.addEventListener("htmx:before:request", (event) => {
  const fresh = document.getElementById("now");
  if (event.target !== fresh) return;
  const inUse = fresh.contains(document.activeElement) || fresh.querySelector("details[open]");
  if (document.hidden || inUse) event.preventDefault();
});

bringBack();
