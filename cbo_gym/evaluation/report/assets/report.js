"use strict";

const facts = JSON.parse(document.getElementById("facts").textContent);
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];

// ---- looks: a colour, a dash in widths of the line, and one of Matplotlib's markers ----

const star = (points, inner) => [...Array(2 * points).keys()].map(k => {
  const radius = k % 2 ? inner : 1, angle = Math.PI * (k / points - 0.5);
  return [radius * Math.cos(angle), radius * Math.sin(angle)];
});
const polygon = (corners, turn) => [...Array(corners).keys()].map(k => {
  const angle = 2 * Math.PI * (k / corners + turn);
  return [Math.cos(angle), Math.sin(angle)];
});
const cross = [[-1, -.35], [-.35, -.35], [-.35, -1], [.35, -1], [.35, -.35], [1, -.35], [1, .35], [.35, .35], [.35, 1],
  [-.35, 1], [-.35, .35], [-1, .35]];
const rotate45 = shape => shape.map(([x, y]) => [(x - y) * Math.SQRT1_2, (x + y) * Math.SQRT1_2]);
const SHAPES = {
  o: polygon(16, 0), s: polygon(4, .125), "^": polygon(3, -.25), D: polygon(4, 0), v: polygon(3, .25), P: cross,
  X: rotate45(cross), "*": star(5, .45),
};
const WIDTH = 2, MARKER = 4.5, MARKERS = 6;

const swatch = look => {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "swatch");
  svg.setAttribute("aria-hidden", "true");
  fill(svg, look);
  return svg;
};
const fill = (svg, look) => {
  const corners = SHAPES[look.marker].map(([x, y]) => [15 + MARKER * x, 6 + MARKER * y].map(v => v.toFixed(1)));
  svg.setAttribute("viewBox", "0 0 30 12");
  svg.innerHTML = `<line x1="0" x2="30" y1="6" y2="6" stroke="${look.colour}" stroke-width="${WIDTH}"
    stroke-dasharray="${look.dash.map(v => v * WIDTH).join(" ")}"/><polygon points="${corners.join(" ")}"
    fill="${look.colour}"/>`;
};
all("svg[data-look]").forEach(svg => fill(svg, facts.agents[svg.dataset.look].look));

// ---- charts ----

const plain = value => value === null || value === undefined ? "" :
  value !== 0 && (Math.abs(value) < 1e-5 || Math.abs(value) >= 1e6) ? value.toExponential(1) : String(Number(value.toPrecision(3)));

const unpack = async text => {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
};

const agentNumber = new Map(facts.agents.map((agent, number) => [agent.name, number]));
const figures = all(".plot"), charts = new Map();  // figure -> its chart, null while it is unpacked
const narrow = matchMedia("(max-width: 68rem)");

const drawMarkers = (plot, lines, legend) => {
  const context = plot.ctx, ratio = devicePixelRatio;
  context.save();
  context.beginPath();
  context.rect(plot.bbox.left - 6, plot.bbox.top - 6, plot.bbox.width + 12, plot.bbox.height + 12);
  context.clip();
  lines.forEach((line, order) => {
    const series = plot.series[line.at];
    if (!series.show) return;
    context.globalAlpha = series.alpha ?? 1;
    context.fillStyle = legend[line.key].colour;
    const [from, to] = [plot.valToIdx(plot.scales.x.min), plot.valToIdx(plot.scales.x.max)];
    const step = Math.max(1, Math.floor((to - from + 1) / MARKERS));
    for (let k = from + Math.floor(step * (.31 * order % 1)); k <= to; k += step) {
      const value = plot.data[line.at][k];
      if (value === null) continue;
      const x = plot.valToPos(plot.data[0][k], "x", true), y = plot.valToPos(value, "y", true);
      context.beginPath();
      SHAPES[legend[line.key].marker].forEach(([dx, dy]) => context.lineTo(x + MARKER * ratio * dx, y + MARKER * ratio * dy));
      context.fill();
    }
  });
  context.restore();
};

const makePlot = (place, content, panel, state) => {
  const data = [content.x], series = [{}], bands = [], lines = [];
  for (const line of panel.lines) {
    const look = content.legend[line.key], mine = more => ({ scale: "y", key: line.key, points: { show: false }, ...more });
    for (const run of line.runs) {
      data.push(run);
      series.push(mine({ stroke: look.colour + "66", width: .75, spanGaps: true, thin: true }));
    }
    if (line.low) {
      data.push(line.high, line.low);
      bands.push({ series: [series.length, series.length + 1], fill: look.colour + "2b" });
      series.push(mine({ stroke: "transparent", width: 0, spanGaps: true, thin: true }),
        mine({ stroke: "transparent", width: 0, spanGaps: true, thin: true }));
    }
    lines.push({ key: line.key, at: series.length });
    data.push(line.mean);
    series.push(mine({ stroke: look.colour, width: WIDTH, dash: look.dash.map(v => v * WIDTH), spanGaps: true }));
  }
  const axis = {
    stroke: () => css("--muted"), font: "12px system-ui, sans-serif",
    grid: { stroke: () => css("--rule"), width: 1 }, ticks: { show: false },
  };
  const log = panel.ticks.length > 0;
  const plot = new uPlot({
    width: place.clientWidth, height: place.clientHeight, series, bands, padding: [8, 10, 0, 0],
    legend: { show: false }, focus: { alpha: .25 },
    cursor: {
      sync: { key: state.key }, y: false, points: { show: false }, drag: { x: true, y: false },
      focus: { prox: 24, dist: (self, at, index, value, cursor) => series[at].thin ? Infinity : Math.abs(value - cursor) },
    },
    scales: { x: { time: false }, y: { distr: log ? 3 : 1, range: () => panel.range } },
    axes: [
      { ...axis, space: 60, incrs: [...Array(12).keys()].flatMap(k => [1, 2, 5].map(d => d * 10 ** (k - 2))), size: 24, label: content.xTitle, labelSize: 18, labelGap: 0, labelFont: axis.font },
      { ...axis, size: 52, space: 40, values: (self, values) => values.map(plain),
        ...(log ? { splits: () => panel.ticks, filter: (self, values) => values } : {}) },
    ],
    hooks: {
      setCursor: [self => showValues(state, self.cursor.idx)],
      setSeries: [(self, at, what) => what.focus != null && highlight(state, self.series[at]?.key ?? null)],
      draw: [self => drawMarkers(self, lines, content.legend)],
    },
  }, data, place);
  plot.lines = lines;
  return plot;
};

const showValues = (state, index) => {
  const known = index !== null && index !== undefined;
  state.round.textContent = known ? `${state.xTitle} ${plain(state.plots[0].data[0][index])}` : "Point at a chart for values";
  // on narrow screens, values of the panel below the pointer
  const shown = state.plots.length > 2 || narrow.matches ? [state.plots[state.under]] : state.plots;
  state.buttons.forEach((button, key) => {
    const values = known ? shown.map(plot => {
      const line = plot.lines.find(candidate => candidate.key === key);
      return line ? plain(plot.data[line.at][index]) : "";
    }) : [];
    button.querySelector("output").textContent = values.filter(Boolean).join(" · ");
  });
};

const highlight = (state, key) => state.buttons.forEach((button, other) => button.classList.toggle("near", other === key));

const showLines = state => {
  const hidden = key => state.off.has(key) || (state.agents[key] !== undefined && !chosen.agents.has(state.agents[key]));
  state.buttons.forEach((button, key) => {
    button.hidden = state.agents[key] !== undefined && !chosen.agents.has(state.agents[key]);
    button.setAttribute("aria-pressed", String(!state.off.has(key)));
  });
  for (const plot of state.plots) plot.batch(() => plot.series.forEach((series, at) => {
    if (at && series.show === hidden(series.key)) plot.setSeries(at, { show: !hidden(series.key) });
  }));
};

const drawChart = async figure => {
  if (charts.has(figure)) return;
  charts.set(figure, null);
  const content = await unpack(figure.dataset.curves), legend = figure.querySelector(".legend");
  const state = {
    key: `chart${figures.indexOf(figure)}`, xTitle: content.xTitle, plots: [], off: new Set(), under: 0,
    agents: content.legend.map(entry => figure.dataset.by === "agent" ? agentNumber.get(entry.name) : undefined),
    round: Object.assign(document.createElement("span"), { className: "round" }),
  };
  state.buttons = content.legend.map((entry, key) => {
    const button = Object.assign(document.createElement("button"), { type: "button", title: entry.name });
    button.append(swatch(entry), Object.assign(document.createElement("span"), { textContent: entry.name }),
      document.createElement("output"));
    button.addEventListener("click", () => {
      state.off.delete(key) || state.off.add(key);
      showLines(state);
    });
    return button;
  });
  legend.append(state.round, ...state.buttons);
  const places = all(".canvas", figure);
  places.forEach((place, number) => place.addEventListener("pointerenter", () => { state.under = number; }));
  state.plots = content.panels.map((panel, number) => makePlot(places[number], content, panel, state));
  charts.set(figure, state);
  showValues(state, null);
  showLines(state);
  const resize = new ResizeObserver(entries => entries.forEach(({ target }) => {
    const plot = state.plots[places.indexOf(target)];
    if (target.clientWidth) plot.setSize({ width: target.clientWidth, height: target.clientHeight });
  }));
  places.forEach(place => resize.observe(place));
};

const drawn = () => [...charts.values()].filter(Boolean);
const seen = new IntersectionObserver(entries => entries.forEach(entry => {
  if (entry.isIntersecting) drawChart(entry.target);
}), { rootMargin: "400px" });
figures.forEach(figure => seen.observe(figure));
// Unpacking takes time that printing does not give, so charts out of sight are drawn one by one where there is time.
const unseen = [...figures];
const drawNext = () => {
  if (unseen.length) drawChart(unseen.shift());
  if (unseen.length) (window.requestIdleCallback ?? setTimeout)(drawNext);
};
addEventListener("load", () => (window.requestIdleCallback ?? setTimeout)(drawNext));
addEventListener("beforeprint", () => figures.forEach(drawChart));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
  drawn().forEach(state => state.plots.forEach(plot => plot.redraw(false, true))));

// ---- filter ----

const form = document.getElementById("filter");
const chosen = { agents: new Set(facts.agents.keys()), envs: new Set(facts.envs.keys()), modes: null };

const applyFilter = () => {
  const given = new FormData(form), text = given.get("env").trim().toLowerCase();
  const modes = form.querySelector("[name=mode]") ? new Set(given.getAll("mode")) : null;
  chosen.agents = new Set(given.getAll("agent").map(Number));
  chosen.envs = new Set([...facts.envs.keys()].filter(number => {
    const env = facts.envs[number];
    return (!modes || modes.has(env.mode)) && env.name.toLowerCase().includes(text);
  }));
  for (const element of all("[data-agent], [data-env], [data-mode]")) {
    const { agent, env, mode } = element.dataset;
    element.hidden = (agent !== undefined && !chosen.agents.has(Number(agent))) ||
      (env !== undefined && !chosen.envs.has(Number(env))) || (mode !== undefined && modes !== null && !modes.has(mode));
  }
  drawn().forEach(showLines);
  const everything = chosen.agents.size === facts.agents.length && chosen.envs.size === facts.envs.length;
  document.getElementById("count").textContent = everything ? "" :
    `Shown: ${chosen.agents.size} of ${facts.agents.length} agents, ${chosen.envs.size} of ${facts.envs.length} environments.`;
};
form.addEventListener("input", applyFilter);
form.addEventListener("submit", event => event.preventDefault());
all("[data-all]").forEach(button => button.addEventListener("click", () => {
  all("[name=agent]", form).forEach(box => { box.checked = Boolean(button.dataset.all); });
  applyFilter();
}));
applyFilter();  // a browser may have kept the earlier choice
const menu = document.getElementById("menu");
if (narrow.matches) menu.open = false;
all("a", menu).forEach(link => link.addEventListener("click", () => { if (narrow.matches) menu.open = false; }));

// ---- sorting: by the number that a cell begins with, others by their text; cells without a value stay last ----

const value = cell => {
  const text = cell.textContent.trim(), number = parseFloat(text.replaceAll(",", ""));
  return text === "-" ? null : Number.isNaN(number) ? text : number;
};
const compare = (a, b) =>
  typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en");
all("thead button").forEach(button => button.addEventListener("click", () => {
  const head = button.parentElement, table = head.closest("table"), body = table.tBodies[0];
  const sign = head.ariaSort === "ascending" ? -1 : 1;
  const rows = [...body.rows].map(row => [value(row.cells[head.cellIndex]), row]);
  rows.sort(([a], [b]) => a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b));
  table.querySelectorAll("thead th").forEach(other => other.removeAttribute("aria-sort"));
  head.ariaSort = sign > 0 ? "ascending" : "descending";
  body.append(...rows.map(([, row]) => row));
}));
