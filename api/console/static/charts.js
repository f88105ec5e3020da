// Charts: counts over time, stacked, or lines over scores with thresholds.
"use strict";

// A colour of the style sheet as a canvas takes it.
function colour(written) {
  const probe = document.createElement("span");
  probe.style.color = written;
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
  const ink = colour("var(--soft)");
  const clock = new Intl.DateTimeFormat(document.documentElement.lang, {
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
    timeZone: host.dataset.zone,
  });
  const axis = { stroke: ink, grid: { stroke: colour("var(--line)"), width: 1 }, ticks: { show: false } };
  const series = names.map((label, at) => ({
    label,
    stroke: colour(`var(--${kinds[at]})`),
    // Opaque, so that areas do not mix their colours.
    fill: plain ? undefined : colour(`color-mix(in srgb, var(--${kinds[at]}) 40%, var(--panel))`),
    width: 1.5,
    points: { show: false },
    paths: "stepped" in host.dataset ? uPlot.paths.stepped({ align: 1 }) : undefined,
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
            // Publications are lines with names.
            ctx.save();
            ctx.strokeStyle = ctx.fillStyle = colour("var(--accent)");
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

// Each threshold is a slider on the chart and a field of the form: what moves one moves the other. When a
// slider rests, the form is sent, and its answer says what the thresholds do and cost.
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
drawAll();
document.addEventListener("htmx:after:swap", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  document.querySelectorAll("[data-chart]").forEach((host) => host.replaceChildren());
  drawAll();
});
