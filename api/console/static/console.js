// What the pages do beyond HTML: keys, live rows, verdicts, charts. Each page reads without it.
"use strict";

document.documentElement.classList.add("scripted");

const typing = (target) => target.closest("input, textarea, select, dialog, .editor-host") !== null;
const { point, thousands } = document.documentElement.dataset;

// A figure as the page writes it, with so many places behind its point.
function figure(value, places = 0) {
  const [whole, part] = value.toFixed(places).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, thousands);
  return part ? grouped + point + part : grouped;
}

const rows = () => [...document.querySelectorAll("table.rows tbody tr:has(a)")];
const chosen = () => document.querySelector('tr[aria-selected="true"]');

function choose(row) {
  chosen()?.removeAttribute("aria-selected");
  if (!row) return;
  row.setAttribute("aria-selected", "true");
  row.scrollIntoView({ block: "nearest" });
  row.querySelector("a")?.focus({ preventScroll: true });
}

function step(by) {
  const all = rows();
  const at = all.indexOf(chosen());
  choose(all[Math.min(all.length - 1, Math.max(0, at + by))]);
}

// A row goes as soon as it is judged, so that the next key means the next row; it comes back if refused,
// or taken back. What is sent of one row is sent in order.
const judged = [];

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
  judged.splice(judged.indexOf(done), 1);
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

const verdicts = { f: "fraud", l: "legitimate", u: "unsure" };
let going = false;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  const { key } = event;
  if (going) {
    going = false;
    for (const link of document.querySelectorAll("nav [data-go]")) if (link.dataset.go === key) link.click();
    return;
  }
  if (key === "g") going = true;
  else if (key === "j") step(1);
  else if (key === "k") step(-1);
  else if (key === "?") document.getElementById("keys").showModal();
  else if (key === "/") {
    const search = document.getElementById("search");
    if (search) search.focus();
    else location.href = "/console/payments";
  } else if (key in verdicts) judge(verdicts[key]);
  else if (key === "z") takeBack();
  else return;
  event.preventDefault();
});

// New payments join the table, and the row that is read stays in view; the oldest others leave.
// Those alike within some seconds stand behind the first of them, which says how many they are.
// It rests while nobody looks, and goes on from where it was.
const shownAtMost = 200;
const alikeWithinMs = 5000;
const alikeAtMost = 50;

function wideRow(table, ...content) {
  const row = document.createElement("tr");
  const cell = row.insertCell();
  cell.colSpan = table.tHead.rows[0].cells.length;
  cell.className = "gap";
  cell.append(...content);
  return row;
}

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
    const address = new URL(table.dataset.live, location.href);
    address.searchParams.set("after", place);
    source = new EventSource(address);
    source.addEventListener("open", () => (table.dataset.following = ""));
    source.addEventListener("error", () => {
      if (source?.readyState !== EventSource.CLOSED) return; // it connects again by itself
      stop();
      box.checked = false;
      join(wideRow(table, table.dataset.stopped));
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
else if (box) box.disabled = true;

// A page that shows itself anew rests while nobody looks, and while somebody is at work in it.
document.addEventListener("htmx:before:request", (event) => {
  const fresh = document.getElementById("now");
  if (event.target !== fresh) return;
  const inUse = fresh.contains(document.activeElement) || fresh.querySelector("details[open]");
  if (document.hidden || inUse) event.preventDefault();
});

// Charts: stacked counts over time, or lines over a plain axis.
function colour(kind) {
  const style = getComputedStyle(document.documentElement);
  const probe = document.createElement("span");
  probe.style.color = style.getPropertyValue(kind === "none" ? "--soft" : `--${kind}`);
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const wholeSteps = [...Array(15).keys()].flatMap((power) => [1, 2, 5].map((step) => step * 10 ** power));

function draw(host) {
  const data = JSON.parse(host.dataset.chart);
  const names = JSON.parse(host.dataset.names);
  const kinds = host.dataset.kinds.split(" ");
  const plain = "plain" in host.dataset;
  const shown = [data[0]];
  let below = data[0].map(() => 0);
  for (const counts of data.slice(1)) {
    below = plain ? counts : counts.map((count, at) => count + below[at]);
    shown.push(below);
  }
  const ink = colour("none");
  const clock = new Intl.DateTimeFormat(document.documentElement.lang, {
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
    timeZone: host.dataset.zone,
  });
  const axis = { stroke: ink, grid: { stroke: colour("line"), width: 1 }, ticks: { show: false } };
  const series = names.map((label, at) => ({
    label,
    stroke: colour(kinds[at]),
    fill: plain ? undefined : colour(kinds[at]).replace("rgb(", "rgba(").replace(")", ", 0.35)"),
    width: 1.5,
    points: { show: false },
    value: (_plot, _value, _series, place) => (place === null ? "–" : figure(data[at + 1][place])),
  }));
  const order = plain ? [...series.keys()] : [...series.keys()].reverse();
  const plot = new uPlot(
    {
      width: host.clientWidth || 600,
      height: 220,
      scales: { x: { time: !plain } },
      axes: [
        {
          ...axis,
          size: 30,
          values: (_plot, ticks) => ticks.map((at) => (plain ? figure(at, 2) : clock.format(at * 1000))),
        },
        { ...axis, size: 56, incrs: wholeSteps, values: (_plot, ticks) => ticks.map((count) => figure(count)) },
      ],
      series: [
        { label: host.dataset.across, value: (_plot, at) => (at === null ? "–" : plain ? figure(at, 2) : clock.format(at * 1000)) },
        ...order.map((at) => series[at]),
      ],
      cursor: { drag: { x: !plain, y: false, setScale: false } },
      hooks: {
        draw: [
          ({ ctx, bbox, valToPos }) => {
            // What was published: a line at its time, with its name.
            ctx.save();
            ctx.strokeStyle = ctx.fillStyle = colour("accent");
            ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
            for (const [at, name] of JSON.parse(host.dataset.marks ?? "[]")) {
              if (at < data[0][0]) continue;
              const x = valToPos(at, "x", true);
              const isLate = x > bbox.left + bbox.width / 2;
              ctx.fillRect(x, bbox.top, devicePixelRatio, bbox.height);
              ctx.textAlign = isLate ? "right" : "left";
              ctx.fillText(name, x + (isLate ? -6 : 6) * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
            }
            ctx.restore();
          },
        ],
        setSelect: [
          (self) => {
            if (!("select" in host.dataset) || self.select.width < 4) return;
            const at = (place) => new Date(self.posToVal(place, "x") * 1000).toISOString();
            const since = at(self.select.left);
            const until = at(self.select.left + self.select.width);
            const query = new URLSearchParams({ q: `since:${since} until:${until}` });
            location.href = `${host.dataset.select}?${query}`;
          },
        ],
      },
    },
    [shown[0], ...order.map((at) => shown[at + 1])],
    host,
  );
  if ("thresholds" in host.dataset) slide(host, plot);
  new ResizeObserver(() => plot.setSize({ width: host.clientWidth, height: 220 })).observe(host);
}

// Thresholds stand on the chart of scores as sliders, each beside its field: what moves one moves the
// other. Once it rests, the form asks for what they do and cost.
const slides = { ArrowRight: 0.01, ArrowUp: 0.01, ArrowLeft: -0.01, ArrowDown: -0.01, PageUp: 0.1, PageDown: -0.1, Home: -1, End: 1 };

function slide(host, plot) {
  const form = document.getElementById("thresholds");
  const { challenge, deny } = form.elements;
  const names = JSON.parse(host.dataset.thresholds);
  const place = () => {
    for (const slider of sliders) {
      const score = slider.field.valueAsNumber;
      if (Number.isNaN(score)) continue;
      slider.style.left = `${plot.valToPos(score, "x")}px`;
      slider.dataset.text = `${names[slider.field.name]} ${figure(score, 2)}`;
      slider.setAttribute("aria-valuenow", score);
      slider.setAttribute("aria-valuetext", figure(score, 2));
    }
  };
  const sliders = [challenge, deny].map((field) => {
    const slider = document.createElement("div");
    slider.field = field;
    slider.className = `slider ${field.name}`;
    slider.tabIndex = 0;
    slider.role = "slider";
    slider.ariaLabel = names[field.name];
    slider.ariaValueMin = 0;
    slider.ariaValueMax = 1;
    const to = (score) => {
      const low = field === deny ? challenge.valueAsNumber : 0;
      const high = field === challenge ? deny.valueAsNumber : 1;
      field.value = Math.min(high, Math.max(low, score)).toFixed(2);
      place();
    };
    const rest = () => field.dispatchEvent(new Event("change", { bubbles: true }));
    slider.addEventListener("keydown", (event) => {
      if (!(event.key in slides)) return;
      event.preventDefault();
      to(field.valueAsNumber + slides[event.key]);
      rest();
    });
    slider.addEventListener("pointerdown", (event) => slider.setPointerCapture(event.pointerId));
    slider.addEventListener("pointermove", (event) => {
      if (!slider.hasPointerCapture(event.pointerId)) return;
      to(plot.posToVal(event.clientX - plot.over.getBoundingClientRect().left, "x"));
    });
    slider.addEventListener("pointerup", rest);
    return slider;
  });
  host.setAttribute("role", "group");
  plot.over.append(...sliders);
  form.addEventListener("input", place);
  plot.hooks.setSize = [place];
  place();
}

const drawAll = () => document.querySelectorAll("[data-chart]:empty").forEach(draw);
if (typeof uPlot !== "undefined") drawAll();
else addEventListener("load", () => typeof uPlot !== "undefined" && drawAll());
document.addEventListener("htmx:after:swap", () => typeof uPlot !== "undefined" && drawAll());
