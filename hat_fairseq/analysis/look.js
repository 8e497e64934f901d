"use strict";
// A row of the matrix is a query, a column is a unit of the source. page.py says how the numbers are stored.
const $ = (id) => document.getElementById(id);
const make = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
const format = (x) => (x === 0 || Math.abs(x) >= 0.0995 ? x.toFixed(3) : x.toPrecision(2));
const data = JSON.parse($("data").textContent);
const S = data.source.length, ROW = 18, HEAD = 24, END = 74; // pixels: a row, the axis, the numbers at a row's end
const kinds = data.maps.slice(0, data.kinds); // after them: the same maps with target sentences as rows
const named = data.unit[0].toUpperCase() + data.unit.slice(1);
const state = {
  tab: kinds.length ? "attention" : "occlusion",
  a: { kind: 0 }, b: { kind: kinds[1] && kinds[1].queries === kinds[0].queries ? 1 : 0 }, // and layer and head
  compare: false, rows: "target sentences", top: 16, scale: "raw", hidden: false,
  pinned: null, at: null, // the pinned row; { query, unit } under the pointer or the cursor
  hits: [], hit: -1, // units that the search finds, and the one that it shows
};
const largestChange = data.occlusion && Math.max(1e-9, ...data.occlusion.change.flat().map(Math.abs));
const SCALES = { // place: from a value to its place on the scale of colours
  raw: { title: "weight", ticks: [0, 0.01, 0.1, 0.25, 0.5, 1], place: Math.sqrt },
  row: { title: "share of the row's maximum", ticks: [0, 0.25, 0.5, 0.75, 1], place: (x) => x },
  log: { title: "weight", ticks: [0.0001, 0.001, 0.01, 0.1, 1], place: (x) => Math.max(0, 1 + Math.log10(x) / 4) },
  change: { title: "nats", ticks: [-1, -0.25, 0, 0.25, 1].map((x) => x * largestChange),
    place: (x) => Math.sign(x) * Math.sqrt(Math.abs(x) / largestChange) },
};

// ---- Data
/** Reads the rows of a map; listed rows are those of all heads but "max". */
async function unpack(map) {
  const packed = Uint8Array.from(atob(map.rows), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const listed = map.layers.length * (map.heads.length - 1) * map.count;
  let read = 0;
  const plane = (size) => bytes.subarray(read, (read += size));
  const wide = (size) => {
    const low = plane(size), high = plane(size);
    return Uint16Array.from(low, (byte, i) => byte | (high[i] << 8));
  };
  const units = S > 256 ? wide(map.k * listed) : plane(map.k * listed), weights = plane(map.k * listed);
  for (let i = listed; i < weights.length; i++) weights[i] = weights[i - listed] - weights[i];
  const rows = map.layers.length * map.heads.length * map.count;
  const numbers = () => Float32Array.from(wide(rows), (code) => code && Math.exp((code - 32768) / 64));
  Object.assign(map, { listed, units, weights, effective: numbers(), effectiveRest: numbers(), rest: numbers() });
}

/** The stored [unit, weight] of a row in descending order; those of "max" are among those of each head. */
function stored(map, layer, head, query) {
  const heads = map.heads.length, last = map.layers.length - 1, found = new Map();
  const add = (l, h) => {
    for (let i = (l * (heads - 1) + h) * map.count + query; i < map.weights.length; i += map.listed) {
      found.set(map.units[i], Math.max(found.get(map.units[i]) ?? 0, (map.weights[i] / 255) ** 2));
    }
  };
  const [from, to] = layer === last ? [0, last] : [layer, layer + 1];
  if (head < heads - 1) add(layer, head);
  else for (let l = from; l < to; l++) for (let h = 0; h < heads - 2; h++) add(l, h);
  return [...found].sort((x, y) => y[1] - x[1]).slice(0, map.k);
}

/** A row by names of layer and head: units, weights, effective number of units, weight of the first unit. */
function row(kind, layerName, headName, query, hidden = false) {
  const map = data.maps[kind], layer = map.layers.indexOf(layerName), head = map.heads.indexOf(headName);
  const i = (layer * map.heads.length + head) * map.count + query, rest = map.rest[i];
  let cells = stored(map, layer, head, query);
  // rows of "max" do not sum to 1: their first unit is known if it is stored
  const first = headName === "max" ? cells.find(([unit]) => unit === 0)?.[1] ?? null : 1 - rest;
  if (hidden) cells = cells.filter(([unit]) => unit !== 0).map(([unit, weight]) => [unit, rest && weight / rest]);
  const effective = Math.min((hidden ? map.effectiveRest : map.effective)[i], S - hidden); // rounded, see page.py
  return { units: cells.map((cell) => cell[0]), weights: cells.map((cell) => cell[1]), effective, first };
}

const attending = () => state.tab === "attention";
const comparing = () => attending() && state.compare;
/** The number of the map of a selection, with the rows that are chosen. */
function mapOf(chosen) {
  const { name, queries } = kinds[chosen.kind];
  const other = data.maps.findIndex((map, i) => i >= data.kinds && map.name === name);
  return queries === "target tokens" && other >= 0 && state.rows === "target sentences" ? other : chosen.kind;
}
const predictions = { queries: "predictions", count: data.occlusion?.rows.length };
const shape = (chosen) => (attending() ? data.maps[mapOf(chosen)] : predictions);
const limit = () => (attending() ? Math.min(state.top, shape(state.a).k) : S);

/** A row as the page shows it: its stored cells, and what stands at its end. */
function rowOf(chosen, query) {
  if (!attending()) {
    const { before, change } = data.occlusion, tone = SCALES.change.place;
    const cells = change[query].map((weight, unit) => ({ unit, weight, shown: weight, tone: tone(weight) }));
    cells.sort((x, y) => Math.abs(y.weight) - Math.abs(x.weight));
    return { cells, end: before[query].toFixed(2), share: 0 };
  }
  const kind = mapOf(chosen), { layers, heads } = data.maps[kind], { scale, hidden } = state;
  const { units, weights, effective } = row(kind, layers[chosen.layer], heads[chosen.head], query, hidden);
  const cells = units.map((unit, i) => {
    const weight = weights[i], value = scale === "row" ? weight / weights[0] : weight;
    return { unit, weight, shown: scale === "log" ? Math.log10(value) : value, tone: SCALES[scale].place(value) };
  });
  return { cells: cells.filter((cell) => cell.weight > 0), end: effective.toFixed(1), share: effective / S };
}
const visible = (chosen, query) => rowOf(chosen, query).cells.slice(0, limit());
function textOf(query) {
  const { queries } = shape(state.a);
  if (queries === "predictions") return data.occlusion.rows[query];
  if (queries === "source") return data.source[query];
  if (queries === "document") return "the whole document";
  if (queries === "target tokens") return data.target[query].trim() || "␣";
  return data.target.slice(...data.sentences[query]).join("").trim();
}
function nameOf(chosen) {
  if (!attending()) return `Change of the log-probability without one ${data.unit}, nats`;
  const { name, layers, heads } = shape(chosen), sink = state.hidden ? `, first ${data.unit} hidden` : "";
  return `${name}, layer ${layers[chosen.layer]}, head ${heads[chosen.head]}${sink}`;
}

// ---- Drawing: the same code on the screen, in PNG and in SVG
const printed = matchMedia("print"), dark = matchMedia("(prefers-color-scheme: dark)");
const LIGHT = {
  ground: "#ffffff", text: "#1a1d21", quiet: "#586069", line: "#d4d8dd", accent: "#0b5cad", hit: "#d99a00",
  up: [[255, 255, 255], [253, 190, 133], [217, 95, 14], [127, 39, 4]],
  down: [[255, 255, 255], [158, 202, 225], [33, 113, 181], [8, 48, 107]] };
const DARK = {
  ground: "#15181c", text: "#e4e7eb", quiet: "#9aa4af", line: "#363d46", accent: "#6cb2f7", hit: "#e0b040",
  up: [[21, 24, 28], [120, 62, 22], [217, 120, 40], [255, 233, 205]],
  down: [[21, 24, 28], [30, 80, 136], [80, 155, 220], [225, 242, 255]] };
/** The colour of a place on the scale: weights and negative changes are blue, positive changes orange. */
function colour(tone, { up, down }) {
  const ramp = tone > 0 && !attending() ? up : down, place = clamp(Math.abs(tone), 0, 1) * 3;
  const i = Math.min(2, Math.floor(place));
  return `rgb(${ramp[i].map((low, c) => Math.round(low + (place - i) * (ramp[i + 1][c] - low))).join(",")})`;
}
const FONT = "11px system-ui, sans-serif", ruler = make("canvas").getContext("2d");
ruler.font = FONT;
/** The beginning of a text that is at most so many pixels wide. */
function fitted(text, width) {
  let short = text.slice(0, 200);
  if (short === text && ruler.measureText(text).width <= width) return text;
  while (short && ruler.measureText(`${short}…`).width > width) short = short.slice(0, -1 - short.length / 20);
  return `${short}…`;
}
function canvasPen(canvas, width, height, scale = devicePixelRatio) {
  [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
  [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  Object.assign(context, { font: FONT, textBaseline: "middle" });
  return {
    origin: (x, y) => context.setTransform(scale, 0, 0, scale, x * scale, y * scale),
    rect(x, y, w, h, fill) { context.fillStyle = fill; context.fillRect(x, y, w, h); },
    text(x, y, text, fill, align = "start") {
      Object.assign(context, { fillStyle: fill, textAlign: align }).fillText(text, x, y);
    },
  };
}
function svgPen(width, height) {
  const parts = [], entities = { "&": "&amp;", "<": "&lt;" };
  const escaped = (text) => String(text).replace(/[\u0000-\u001f]/g, " ").replace(/[&<]/g, (c) => entities[c]);
  return {
    origin: (x, y) => parts.push(`</g><g transform="translate(${x} ${y})">`),
    rect: (x, y, w, h, fill) => parts.push(`<rect x="${x}" y="${y}" width="${w}" height="${h}" fill="${fill}"/>`),
    text: (x, y, text, fill, align = "start") => parts.push(`<text x="${x}" y="${y + 4}" fill="${fill}" `
      + `text-anchor="${align.replace("center", "middle")}">${escaped(text)}</text>`),
    finished: () => `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" `
      + `font-family="sans-serif" font-size="11"><g>\n${parts.join("\n")}\n</g></svg>\n`,
  };
}
function frame(pen, x, y, w, h, fill) {
  for (const top of [y, y + h - 1]) pen.rect(x, top, w, 1, fill);
  for (const left of [x, x + w - 1]) pen.rect(left, y, 1, h, fill);
}

/** Draws the part of a matrix that `area` shows: its size, what is scrolled away, widths of label and cell. */
function drawMatrix(pen, chosen, area, colours, marks) {
  const { width, height, left, top, label, cell } = area, { count, queries } = shape(chosen);
  const right = Math.min(width, label + S * cell - left + END) - END;
  const edge = (unit) => Math.round(label + unit * cell - left);
  pen.rect(0, 0, width, height, colours.ground);
  for (let query = Math.floor(top / ROW); query < count && HEAD + query * ROW - top < height; query++) {
    const y = HEAD + query * ROW - top, { cells, end, share } = rowOf(chosen, query);
    for (const { unit, tone } of cells.slice(0, limit())) {
      const from = Math.max(label, edge(unit)), to = Math.min(right, edge(unit + 1));
      if (from < to) pen.rect(from, y, to - from, ROW - 1, colour(tone, colours));
    }
    pen.rect(label, y + ROW - 1, right - label, 1, colours.line);
    pen.text(22, y + ROW / 2, query + 1, colours.quiet, "end");
    if (label > 60) pen.text(28, y + ROW / 2, fitted(textOf(query), label - 34), colours.text);
    pen.rect(right + 6, y + 5, 28 * share, ROW - 11, colours.accent);
    pen.text(right + END - 4, y + ROW / 2, end, colours.quiet, "end");
    if (!marks) continue;
    const here = state.at?.query === query;
    if (query === state.pinned) pen.rect(0, y, 3, ROW - 1, colours.accent);
    if (here || query === state.pinned) frame(pen, label, y - 1, right - label, ROW + 1, colours.accent);
    if (here && state.at.unit !== null && edge(state.at.unit) >= label) {
      frame(pen, edge(state.at.unit) - 1, y - 1, Math.max(3, cell + 2), ROW + 1, colours.text);
    }
  }
  pen.rect(0, 0, width, HEAD, colours.ground);
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((n) => n * cell >= 32) || 1000;
  for (let unit = 0; unit < S; unit++) {
    const middle = label + (unit + 0.5) * cell - left;
    if (middle < label || middle > right) continue;
    if (unit === 0 || ((unit + 1) % step === 0 && unit * cell > 24)) {
      pen.text(middle, 9, unit + 1, colours.quiet, "center");
      pen.rect(middle, HEAD - 7, 1, 4, colours.quiet);
    }
    if (marks && state.hits.includes(unit)) pen.rect(middle - 1.5, HEAD - 6, 3, 5, colours.hit);
  }
  pen.rect(label, HEAD - 2, right - label, 1, colours.line);
  if (label > 60) pen.text(4, 9, fitted(queries, label - 8), colours.quiet);
  pen.text(right + END - 4, 9, attending() ? "eff. units" : "log p", colours.quiet, "end");
}
function drawLegend(pen, colours) {
  const { title, ticks, place } = SCALES[attending() ? state.scale : "change"], wide = 240;
  const low = attending() ? 0 : -1, x = (tone) => 12 + (wide * (tone - low)) / (1 - low);
  for (let i = 0; i < wide; i++) pen.rect(12 + i, 2, 1, 10, colour(low + (i / (wide - 1)) * (1 - low), colours));
  frame(pen, 11, 1, wide + 2, 12, colours.line);
  for (const tick of ticks) pen.text(x(place(tick)), 21, +tick.toPrecision(2), colours.quiet, "center");
  pen.text(wide + 22, 8, title, colours.quiet);
}

// ---- The page
const sides = [["a", $("scroll-a"), ""], ["b", $("scroll-b"), "-b"]]; // the last: how the ids of selectors end
const items = data.source.map((text, unit) => make("li", { value: unit + 1 }));
$("source").append(...items);
function areaOf(side, scroll) {
  const width = scroll.clientWidth, wanted = shape(state[side]).queries === "target tokens" ? 130 : 210;
  const label = side === "b" && innerWidth > 900 ? 30 : Math.round(Math.min(wanted, width * 0.3));
  return { label, cell: clamp((width - label - END) / S, 2, 28), left: scroll.scrollLeft, top: scroll.scrollTop };
}
function paint() {
  const colours = dark.matches && !printed.matches ? DARK : LIGHT;
  const tones = new Map(), query = state.pinned ?? state.at?.query;
  for (const [side, scroll] of sides.slice(0, comparing() ? 2 : 1)) {
    const sheet = scroll.firstElementChild, area = areaOf(side, scroll);
    const full = Math.floor(area.label + S * area.cell + END);
    Object.assign(sheet.style, { width: `${full}px`, height: `${HEAD + shape(state[side]).count * ROW}px` });
    Object.assign(area, { width: Math.min(full, scroll.clientWidth), height: scroll.clientHeight });
    drawMatrix(canvasPen(sheet.firstElementChild, area.width, area.height), state[side], area, colours, true);
  }
  drawLegend(canvasPen($("legend"), Math.min(440, $("matrices").clientWidth), 30), colours);
  if (query !== undefined) for (const { unit, tone } of visible(state.a, query)) tones.set(unit, tone);
  items.forEach((item, unit) => {
    item.style.background = tones.has(unit) ? colour(tones.get(unit) * 0.45, colours) : "";
    item.classList.toggle("pointed", state.at?.unit === unit);
  });
  paintMinimap(tones, colours);
  describe();
}
function paintMinimap(tones, colours) {
  const list = $("source"), map = $("minimap"), { clientWidth, clientHeight } = map;
  const pen = canvasPen(map, clientWidth, clientHeight), scale = clientHeight / Math.max(1, list.scrollHeight);
  map.style.width = map.style.height = ""; // the style sheet's
  items.forEach((item, unit) => {
    const y = item.offsetTop * scale, high = item.offsetHeight * scale;
    if (tones.has(unit)) pen.rect(0, y, clientWidth - 5, Math.max(1, high), colour(tones.get(unit), colours));
    if (state.hits.includes(unit)) pen.rect(clientWidth - 4, y, 4, Math.max(2, high), colours.hit);
  });
  frame(pen, 0, list.scrollTop * scale, clientWidth, list.clientHeight * scale, colours.quiet);
}

/** Value and rank of a unit in a row, in words, and the value if it is known. */
function valueOf(chosen, { query, unit }) {
  const { cells } = rowOf(chosen, query), rank = cells.findIndex((cell) => cell.unit === unit);
  if (attending() && state.hidden && unit === 0) return ["hidden", null];
  if (rank < 0) return [`≤ ${format(cells.at(-1)?.weight ?? 0)}, not stored`, null];
  const { weight, shown } = cells[rank];
  const scaled = shown === weight ? "" : `, as shown ${format(shown)}`;
  return [`${format(weight)}${scaled}, rank ${rank + 1} of ${S}`, weight];
}
const difference = (x, y) => (x === null || y === null ? "unknown" : format(x - y));
function describe() {
  const lines = [], { at } = state;
  if (at) lines.push([`Row ${at.query + 1} of ${shape(state.a).count}:`, textOf(at.query)]);
  if (at && at.unit !== null) {
    const [words, value] = valueOf(state.a, at), [others, other] = comparing() ? valueOf(state.b, at) : [];
    lines.push([`${named} ${at.unit + 1}:`, data.source[at.unit]], [attending() ? "Weight:" : "Change:", words]);
    if (comparing()) lines.push(["Compared:", `${others}; difference ${difference(value, other)}`]);
  }
  $("hover").replaceChildren(...lines.map(([strong, text]) => make("p", {}, make("b", {}, strong), ` ${text}`)));
}
let waiting;
const repaint = () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(paint); };

/** Shows the state: selectors, captions, evidence, matrix. */
function update() {
  for (const name of ["attention", "occlusion"]) $(`tab-${name}`).setAttribute("aria-selected", name === state.tab);
  document.body.classList.toggle("predicting", !attending());
  document.body.classList.toggle("comparing", comparing());
  $("second").hidden = $("figure-b").hidden = !comparing();
  if (attending()) updateSelectors();
  const { count } = shape(state.a);
  if (state.pinned >= count) state.pinned = null;
  if (state.at?.query >= count) state.at = null;
  for (const [side, scroll] of sides.slice(0, comparing() ? 2 : 1)) {
    $(`caption-${side}`).textContent = nameOf(state[side]);
    scroll.ariaLabel = `Matrix: ${nameOf(state[side])}. Arrow keys move, Enter pins a row.`;
  }
  updateEvidence();
  paint();
}
function updateSelectors() {
  const options = (id, names, chosen) => {
    $(id).replaceChildren(...names.map((name, i) => new Option(name, i, false, i === chosen)));
    return chosen;
  };
  const { queries } = kinds[state.a.kind];
  if (kinds[state.b.kind].queries !== queries) state.b.kind = state.a.kind; // rows must be the same to be compared
  for (const [side, , end] of sides) {
    const chosen = state[side], { layers, heads } = kinds[chosen.kind];
    options(`kind${end}`, kinds.map((one) => one.name), chosen.kind);
    chosen.layer = options(`layer${end}`, layers, layers[chosen.layer] ? chosen.layer : layers.length - 1);
    chosen.head = options(`head${end}`, heads, heads[chosen.head] ? chosen.head : heads.length - 2);
  }
  for (const option of $("kind-b").options) option.disabled = kinds[option.value].queries !== queries;
  $("rows-label").hidden = queries !== "target tokens" || data.kinds === data.maps.length;
  Object.assign($("top"), { max: shape(state.a).k, value: limit() });
}
function updateEvidence() {
  const query = state.pinned, { count, queries } = shape(state.a), scaled = attending() && state.scale !== "raw";
  $("table").hidden = query === null;
  $("pinned").textContent = query === null ? "No row is pinned" : `Row ${query + 1} of ${count}`;
  $("pinned-text").textContent = query === null ? "A click or Enter on a row lists its evidence." : textOf(query);
  if (query === null) return;
  const [from, to] = data.sentences.find(([a, b]) => a <= query && query < b) || [0, 0];
  if (queries === "target tokens" && to) {
    const part = (a, b) => data.target.slice(a, b).join("");
    $("pinned-text").replaceChildren(part(from, query), make("mark", {}, data.target[query]), part(query + 1, to));
  }
  $("table-caption").textContent = `Evidence for row ${query + 1}: ${nameOf(state.a)}`;
  const titles = ["Rank", named, attending() ? "Weight" : "Change", ...(scaled ? ["As shown"] : [])];
  titles.push(...(comparing() ? ["Compared", "Difference"] : []), "Text");
  $("columns").replaceChildren(...titles.map((title) => make("th", { scope: "col" }, title)));
  $("ranked").replaceChildren(...visible(state.a, query).map(({ unit, weight, shown }, rank) => {
    const show = { type: "button", onclick: () => scrollToUnit(unit), ariaLabel: `Show ${data.unit} ${unit + 1}` };
    const values = [rank + 1, make("button", show, unit + 1), format(weight), ...(scaled ? [format(shown)] : [])];
    const [words, other] = comparing() ? valueOf(state.b, { query, unit }) : [];
    if (comparing()) values.push(words.split(",")[0], difference(weight, other));
    return make("tr", {}, ...[...values, data.source[unit]].map((content) => make("td", {}, content)));
  }));
}
function scrollToUnit(unit) {
  const list = $("source");
  list.scrollTop = items[unit].offsetTop - (list.clientHeight - items[unit].offsetHeight) / 2;
  items.forEach((item, i) => item.classList.toggle("current", i === unit));
  repaint();
}
function pin(query, unit) {
  state.pinned = query;
  updateEvidence();
  const cells = query === null ? [] : visible(state.a, query);
  if (cells.length) scrollToUnit(cells.some((cell) => cell.unit === unit) ? unit : cells[0].unit);
  repaint();
}
function find(text) {
  const pattern = text.trim() && new RegExp(`(${text.trim().replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")})`, "giu");
  Object.assign(state, { hits: [], hit: -1 });
  items.forEach((item, unit) => {
    const parts = pattern ? data.source[unit].split(pattern) : [data.source[unit]]; // every second one is a hit
    item.replaceChildren(...parts.map((part, i) => (i % 2 ? make("mark", {}, part) : part)));
    item.classList.toggle("hit", parts.length > 1);
    if (parts.length > 1) state.hits.push(unit);
  });
  $("source").classList.toggle("searching", Boolean(pattern));
  $("hits").textContent = pattern ? `${state.hits.length} of ${S}` : "";
  nextHit();
  repaint();
}
const nextHit = () => state.hits.length && scrollToUnit(state.hits[++state.hit % state.hits.length]);

// ---- Export: all rows of what is selected
const selections = () => (comparing() ? [state.a, state.b] : [state.a]);
const precise = (x) => Number(x.toPrecision(6));
function save(content, type, end) {
  const href = URL.createObjectURL(new Blob([content], { type }));
  make("a", { href, download: `${data.document.replace(/[^\w.-]+/g, "_")}-${state.tab}.${end}` }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10000);
}

/** Whole matrices with captions and legend, in the light colours. */
function picture(makePen) {
  const label = 240, cell = clamp(900 / S, 3, 24), width = label + S * cell + END + 100, chosen = selections();
  const height = HEAD + shape(state.a).count * ROW, wide = Math.ceil(chosen.length * width);
  const pen = makePen(wide, height + 70);
  pen.rect(0, 0, wide, height + 70, LIGHT.ground);
  chosen.forEach((one, i) => {
    pen.origin(i * width, 24);
    pen.text(4, -12, nameOf(one), LIGHT.text);
    drawMatrix(pen, one, { width, height, left: 0, top: 0, label, cell }, LIGHT, false);
  });
  pen.origin(0, height + 34);
  drawLegend(pen, LIGHT);
  return pen;
}
function rowsOf(chosen) {
  return Array.from({ length: shape(chosen).count }, (_, query) => ({
    query: query + 1, text: textOf(query), [attending() ? "effective" : "before"]: +rowOf(chosen, query).end,
    cells: visible(chosen, query).map(({ unit, weight, shown }) => [unit + 1, precise(weight), precise(shown)]),
  }));
}
const exporters = {
  png() {
    const canvas = make("canvas");
    picture((width, height) => canvasPen(canvas, width, height, Math.min(2, 16000 / Math.max(width, height))));
    canvas.toBlob((blob) => save(blob, "image/png", "png"));
  },
  svg: () => save(picture(svgPen).finished(), "image/svg+xml", "svg"),
  csv() {
    const quoted = (value) => (typeof value === "number" ? value : `"${value.replaceAll('"', '""')}"`);
    const lines = selections().flatMap((chosen) => rowsOf(chosen).flatMap(({ query, text, cells }) => {
      return cells.map(([unit, ...values]) => [nameOf(chosen), query, text, unit, data.source[unit - 1], ...values]);
    }));
    lines.unshift(["selection", "query", "query_text", "unit", "unit_text", "weight", "shown"]);
    save(lines.map((line) => `${line.map(quoted).join(",")}\r\n`).join(""), "text/csv", "csv");
  },
  json() {
    const { document, model, unit, source } = data, { tab, scale, hidden } = state, { queries } = shape(state.a);
    const shown = selections().map((chosen) => ({ name: nameOf(chosen), rows: rowsOf(chosen) }));
    const all = { document, model, unit, source, tab, queries, scale, hidden, top: limit(), selections: shown };
    save(JSON.stringify(all, null, 1), "application/json", "json");
  },
};

// ---- Events
function place(event, side, scroll) {
  const { label, cell, left, top } = areaOf(side, scroll), box = scroll.querySelector("canvas").getBoundingClientRect();
  const query = Math.floor((event.clientY - box.top - HEAD + top) / ROW), x = event.clientX - box.left - label;
  const unit = Math.floor((x + left) / cell), inside = x >= 0 && unit < S && event.clientX < box.right - END;
  if (event.clientY - box.top < HEAD || query >= shape(state.a).count) return null;
  return { query, unit: inside ? unit : null };
}
function move(rows, columns, scroll) {
  const start = state.at || { query: state.pinned ?? -1, unit: null };
  const query = clamp(start.query + rows, 0, shape(state.a).count - 1);
  state.at = { query, unit: columns ? clamp((start.unit ?? -1) + columns, 0, S - 1) : start.unit };
  scroll.scrollTop = clamp(scroll.scrollTop, (query + 1) * ROW + HEAD - scroll.clientHeight, query * ROW);
  repaint();
}
function step(name, by) {
  const count = kinds[state.a.kind]?.[`${name}s`].length;
  if (attending()) state.a[name] = (state.a[name] + by + count) % count;
  update();
}
const everywhere = {
  "/": () => $("search").focus(), "?": () => $("help").showModal(),
  "[": () => step("layer", -1), "]": () => step("layer", 1), "{": () => step("head", -1), "}": () => step("head", 1),
};
const arrows = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
function onKey(event) {
  const { key, target } = event, field = target.matches("input, select"), scroll = target.closest(".scroll");
  if ($("help").open || event.metaKey || (event.ctrlKey && !event.altKey)) return; // both: AltGr
  if (key === "Escape") {
    if (field) target.blur();
    if ($("search").value) find($("search").value = ""); else pin(null);
  } else if (key === "Enter" && target === $("search")) nextHit();
  else if (everywhere[key] && !field) everywhere[key]();
  else if (scroll && arrows[key]) move(...arrows[key], scroll);
  else if (scroll && key === "Enter" && state.at) pin(state.at.query, state.at.unit);
  else return;
  event.preventDefault();
}

/** Takes over what the selectors say. */
function read(target) {
  const { pinned, rows } = state;
  for (const [side, , end] of sides) {
    for (const name of ["kind", "layer", "head"]) state[side][name] = Number($(name + end).value);
  }
  if (target.id === "top") state.top = clamp(Math.round(target.value) || 16, 1, S); // not what the page puts there
  [state.compare, state.hidden] = [$("compare").checked, $("sink").checked];
  [state.scale, state.rows] = [$("scale").value, $("rows").value];
  if (state.rows === rows || pinned === null) return; // a sentence stays as its first token, a token as its sentence
  const sentence = data.sentences.findIndex(([from, to]) => from <= pinned && pinned < to);
  state.pinned = state.rows === "target tokens" ? data.sentences[pinned][0] : sentence < 0 ? null : sentence;
}
function listen() {
  const on = (id, event, act) => $(id).addEventListener(event, act);
  const choose = (tab) => { Object.assign(state, { tab, pinned: null, at: null }); update(); };
  for (const tab of ["attention", "occlusion"]) on(`tab-${tab}`, "click", () => choose(tab));
  on("controls", "change", ({ target }) => { read(target); update(); });
  for (const [side, scroll] of sides) {
    scroll.addEventListener("pointermove", (event) => { state.at = place(event, side, scroll); repaint(); });
    scroll.addEventListener("pointerleave", () => { state.at = null; repaint(); });
    scroll.addEventListener("click", (event) => {
      const at = place(event, side, scroll);
      if (at) pin(at.query, at.unit);
    });
    scroll.addEventListener("scroll", () => {
      for (const [, other] of sides) [other.scrollTop, other.scrollLeft] = [scroll.scrollTop, scroll.scrollLeft];
      repaint();
    });
  }
  on("search", "input", ({ target }) => find(target.value));
  on("source", "scroll", repaint);
  on("minimap", "click", ({ offsetY, target }) => {
    $("source").scrollTop = (offsetY / target.clientHeight) * $("source").scrollHeight - $("source").clientHeight / 2;
  });
  on("help-open", "click", () => $("help").showModal());
  on("controls", "submit", (event) => event.preventDefault());
  for (const button of document.querySelectorAll("[data-export]")) button.onclick = exporters[button.dataset.export];
  document.addEventListener("keydown", onKey);
  for (const media of [dark, printed]) media.addEventListener("change", paint);
  addEventListener("resize", repaint);
}
async function start() {
  const amount = `${S} ${data.unit}${S === 1 ? "" : "s"}`, tokens = data.target.length;
  await Promise.all(data.maps.map(unpack));
  const kept = data.maps.map(({ name, queries, k, kept: share }) => {
    return ` ${name}, ${queries}: ${k} of ${S} weights of a row, ${(100 * share).toFixed(1)} % of the weight.`;
  });
  const texts = {
    document: data.document, note: data.note, "source-title": `Source, ${amount}`,
    about: `${data.model}: ${amount}${tokens ? `, ${tokens} target tokens` : ""}`,
    "sink-label": `Hide the first ${data.unit} and renormalise`,
    footer: `This page: ${(data.bytes / 1e6).toFixed(2)} MB, no network.${kept.join("")}`,
  };
  for (const [id, text] of Object.entries(texts)) $(id).textContent = text;
  document.title = `${data.document} – hat look`;
  [$("note").hidden, $("tab-attention").hidden, $("tab-occlusion").hidden] = [!data.note, !data.kinds, !data.occlusion];
  $("sink").disabled = S === 1;
  listen();
  find(""); // puts the texts there
  update();
}
window.look = { row, state, maps: data.maps, ready: start() };
window.look.ready.catch(({ message }) => {
  $("document").textContent = `This page cannot show its data (${message}). It needs a browser of 2023 or later.`;
});
