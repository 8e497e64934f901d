// A row is a sentence of the output, or a unit that attends; a column is a unit of the source.
const S = data.source.length, TOKENS = data.lengths.reduce((sum, length) => sum + length, 0);
const LISTED = 16; // units of a table
const views = [...(data.occlusion ? [data.occlusion] : []), ...data.maps];
const state = { view: 0, layer: 0, head: 0, by: "unit", row: 0, token: null, unit: null };
const view = () => views[state.view];
const isOcclusion = () => view() === data.occlusion;
const largestOf = (row) => row.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
const largest = data.occlusion && Math.max(1e-9, ...data.occlusion.change.map(largestOf));
const mean = (row) => row.reduce((sum, x) => sum + x, 0) / row.length;
const fixed = (x) => (x === 0 || Math.abs(x) >= 0.0995 ? x.toFixed(2) : x.toPrecision(2));
const percent = (x) => `${(100 * x).toFixed(x < 0.0995 ? 1 : 0)} %`;

// ---- Numbers
function textsOfRows() {
  if (isOcclusion()) return view().rows;
  if (view().queries === "source") return data.source;
  if (view().queries === "document") return ["The whole document"];
  return data.spans.map(([from, to]) => data.target.slice(from, to).join("").trim());
}

/** How many times a weight is that of uniform attention: per unit, or per token of the unit. */
const times = (weight, unit, by) => weight * (by === "unit" ? S : TOKENS / data.lengths[unit]);

/** The cells of a row, or of a token of the row: unit, value, tone from -1 (helps, far above uniform) to 1 (hurts). */
function cellsOf(row, token = null) {
  if (isOcclusion()) {
    return view().change[row].map((value, unit) => {
      const tone = Math.sign(value) * Math.sqrt(Math.abs(value) / largest);
      return { unit, value, tone: Math.abs(value) < data.least ? 0 : visible(tone) };
    });
  }
  const flat = token === null ? view().rows[state.layer][state.head][row] : view().tokens[state.layer][token];
  return Array.from({ length: flat.length / 2 }, (_, i) => {
    const unit = flat[2 * i], value = flat[2 * i + 1];
    return { unit, value, tone: visible(-Math.min(1, Math.max(0, Math.log2(times(value, unit, state.by)) / 5))) };
  });
}
const visible = (tone) => (Math.abs(tone) < 0.05 ? 0 : tone);
const painted = []; // the tone of each unit in the source
const colour = (tone) => (tone < 0 ? `rgba(33,113,200,${-tone})` : `rgba(225,95,10,${tone})`);

// ---- Drawing
function strip(canvas, cells, height) {
  const [width, full] = [canvas.clientWidth, canvas.clientHeight].map((size) => Math.round(size * devicePixelRatio));
  Object.assign(canvas, { width, height: full });
  const pen = canvas.getContext("2d"), at = (unit) => Math.round((unit * width) / S);
  for (const cell of cells) {
    pen.fillStyle = colour(cell.tone);
    const high = Math.round(full * height(cell));
    if (cell.tone) pen.fillRect(at(cell.unit), full - high, Math.max(1, at(cell.unit + 1) - at(cell.unit)), high);
  }
}
const strongestLast = (cells) => cells.sort((x, y) => Math.abs(x.tone) - Math.abs(y.tone));
const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) strip(target, strongestLast(cellsOf(Number(target.dataset.row))), () => 1);
  }
});
function draw() {
  seen.disconnect();
  for (const canvas of $("rows").querySelectorAll("canvas")) seen.observe(canvas);
  const longest = largestOf(data.lengths);
  const lengths = data.lengths.map((length, unit) => ({ unit, tone: -0.6, value: length / longest }));
  strip($("columns").querySelector("canvas"), lengths, (cell) => cell.value);
  $("columns-label").textContent = `Lengths, up to ${longest} tokens`;
}

// ---- What is chosen
function options(id, names, chosen) {
  $(id).replaceChildren(...names.map((name, i) => new Option(name, i, false, i === chosen)));
  return chosen;
}
/** Chooses the mean of all layers, and the measure in which a head without preference is uniform. */
function openView() {
  Object.assign(state, { layer: null, head: null, token: null, by: view().toTokens ? "token" : "unit" });
}
/** Shows another view, layer, head or measure: selectors, legend, rows. */
function showView() {
  document.body.classList.toggle("occluding", isOcclusion());
  for (const label of document.querySelectorAll(".attention")) label.hidden = isOcclusion();
  options("view", views.map((one) => one.name ?? "Occlusion: what helps and hurts"), state.view);
  options("by", [`per ${data.unit}`, "per token"], Number(state.by === "token"));
  if (!isOcclusion()) {
    const { layers, heads, used } = view();
    state.layer = options("layer", layers, state.layer in layers ? state.layer : layers.length - 1);
    const uses = used[state.layer].map((rows, i) => `${heads[i]} (uses ${percent(mean(rows))})`);
    state.head = options("head", uses, state.head in heads ? state.head : heads.length - 2);
  }
  const steps = isOcclusion()
    ? [[-1, `−${fixed(largest)} nats: helps`], [-0.4, ""], [0, "0"], [0.4, ""], [1, "hurts"]]
    : [1, 2, 4, 8, 16, 32].map((step, i) => [-i / 5, `${step}×`]);
  $("legend").replaceChildren(...steps.map(([tone, text]) => {
    const box = make("span", {}, text || "\u00a0");
    box.style.background = colour(tone);
    if (Math.abs(tone) > 0.7) box.style.color = "#fff";
    return box;
  }));
  const texts = textsOfRows();
  state.row = Math.min(state.row, texts.length - 1);
  const titles = { source: `Each ${data.unit} as it attends`, document: "The document" };
  $("rows-title").textContent = titles[view().queries] ?? "Output";
  $("rows").replaceChildren(...texts.map((text, row) => {
    const canvas = make("canvas");
    canvas.dataset.row = row;
    const number = isOcclusion() && texts.length > 1 ? row || "" : row + 1; // the first one is the whole output
    const parts = [make("span", {}, number), make("span", {}, text), canvas, make("span")];
    return make("li", {}, make("button", { type: "button", title: text }, ...parts));
  }));
  showRow();
  showValues();
  draw();
}

/** Pins a row: its tokens, its tables, its colours in the source. */
function showRow() {
  [...$("rows").children].forEach((item, row) => { item.firstChild.ariaPressed = row === state.row; });
  const texts = textsOfRows(), span = view().tokens && data.spans[state.row];
  $("row-title").textContent = titleOf(texts);
  const pieces = span ? data.target.slice(...span) : [];
  $("row-text").replaceChildren(...(span ? pieces.map((text, i) => {
    const token = span[0] + i, ariaPressed = state.token === token;
    return make("button", { type: "button", ariaPressed, onclick: () => chooseToken(token) }, text);
  }) : [titleOf(texts) === texts[state.row] ? "" : texts[state.row]]));
  const cells = cellsOf(state.row, state.token);
  $("tables").replaceChildren(...(isOcclusion() ? tablesOfOcclusion(cells) : [tableOfAttention(cells)]));
  const tones = new Map(cells.map(({ unit, tone }) => [unit, tone]));
  items.forEach((item, unit) => {
    const tone = tones.get(unit) ?? 0;
    if (tone !== (painted[unit] ?? 0)) item.style.background = colour(0.45 * (painted[unit] = tone));
  });
}
function titleOf(texts) {
  const token = state.token === null ? "" : `, token “${data.target[state.token].trim()}” (mean of the heads)`;
  if (texts.length === 1) return texts[0];
  if (isOcclusion()) return state.row ? `Sentence ${state.row} of the output` : texts[0];
  return `${view().queries === "source" ? named : "Sentence"} ${state.row + 1} of ${texts.length}${token}`;
}
function chooseToken(token) {
  state.token = state.token === token ? null : token;
  showRow();
  [...$("row-text").children].find((button) => button.ariaPressed === "true")?.focus();
}
function chooseRow(row) {
  Object.assign(state, { row, token: null });
  showRow();
}
function chooseUnit(unit) {
  items[state.unit]?.removeAttribute("aria-current");
  state.unit = state.unit === unit ? null : unit;
  if (state.unit !== null) {
    items[unit].setAttribute("aria-current", "true");
    items[unit].scrollIntoView({ block: "nearest" });
  }
  showValues();
}

/** The values at the ends of rows: those of the chosen unit, or of the whole row. */
function showValues() {
  const { unit } = state, whole = isOcclusion() ? "log p" : "used";
  $("value-title").textContent = unit === null ? whole : `${isOcclusion() ? "without" : "to"} ${unit + 1}`;
  [...$("rows").children].forEach((item, row) => { item.firstChild.lastChild.textContent = valueOf(row, unit); });
}
function valueOf(row, unit) {
  if (unit === null) {
    return isOcclusion() ? view().before[row].toFixed(2) : percent(view().used[state.layer][state.head][row]);
  }
  const cell = cellsOf(row).find((one) => one.unit === unit);
  if (!cell) return "·"; // not among the largest of the row
  return isOcclusion() ? cell.value.toFixed(2) : `${times(cell.value, unit, state.by).toFixed(1)}×`;
}

// ---- Tables
function textOf(unit) {
  const role = data.roles[unit];
  return role ? [make("span", { className: "chip" }, role), ` ${data.source[unit]}`] : [data.source[unit]];
}
function table(caption, heads, rows) {
  if (!rows.length) return make("table", {}, make("caption", {}, caption));
  const body = rows.map(({ unit, values }) => {
    const show = make("button", { type: "button", onclick: () => chooseUnit(unit) }, unit + 1);
    const cells = [show, ...values].map((value) => make("td", {}, value));
    return make("tr", {}, ...cells, make("td", {}, make("div", {}, ...textOf(unit))));
  });
  const head = make("tr", {}, ...[named, ...heads, "Text"].map((text) => make("th", { scope: "col" }, text)));
  return make("table", {}, make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...body));
}
function tablesOfOcclusion(cells) {
  const falls = cells.reduce((sum, { value }) => sum + Math.min(0, value), 0);
  const order = [...cells].sort((x, y) => x.value - y.value);
  const helps = order.filter(({ value }) => value <= -data.least);
  const hurts = order.filter(({ value }) => value >= data.least).reverse();
  const top = (some) => some.slice(0, LISTED);
  const count = (some, word) => `${some.length} of ${S} ${word}`;
  return [
    table(`Helps: without it, the output is less likely (${count(helps, "help")})`, ["Change", "Share"],
      top(helps).map(({ unit, value }) => ({ unit, values: [value.toFixed(2), percent(value / falls)] }))),
    table(`Hurts: without it, the output is more likely (${count(hurts, "hurt")})`, ["Change"],
      top(hurts).map(({ unit, value }) => ({ unit, values: [`+${value.toFixed(2)}`] }))),
  ];
}
function tableOfAttention(cells) {
  const factor = ({ value, unit }) => times(value, unit, state.by);
  const order = [...cells].sort((x, y) => factor(y) - factor(x)).slice(0, LISTED);
  const rows = order.map(({ unit, value }) => {
    const [unitTimes, tokenTimes] = ["unit", "token"].map((by) => `${times(value, unit, by).toFixed(2)}×`);
    return { unit, values: [fixed(value), unitTimes, data.lengths[unit], tokenTimes] };
  });
  const uniform = state.token === null && view().used[state.layer][state.head][state.row] >= data.uniform;
  const caption = `${uniform ? "This row is practically uniform. " : ""}The ${order.length} largest weights per `
    + `${state.by === "unit" ? data.unit : "token"}; 1× is uniform`;
  return table(caption, ["Weight", `Per ${data.unit}`, "Tokens", "Per token"], rows);
}

// ---- Events
function step(event, chosen, count, choose) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key], next = (chosen ?? -1) + by;
  if (!by || next < 0 || next >= count) return;
  event.preventDefault();
  choose(next);
}
const focusRow = (row) => { chooseRow(row); $("rows").children[row].firstChild.focus(); };
$("rows").addEventListener("keydown", (event) => step(event, state.row, $("rows").children.length, focusRow));
$("source").addEventListener("keydown", (event) => step(event, state.unit, S, chooseUnit));
$("rows").addEventListener("click", (event) => {
  const item = event.target.closest("li");
  chooseRow([...$("rows").children].indexOf(item));
  if (event.target.tagName !== "CANVAS") return;
  const box = event.target.getBoundingClientRect();
  chooseUnit(Math.min(S - 1, Math.floor(((event.clientX - box.left) / box.width) * S)));
});
$("source").addEventListener("click", (event) => {
  const item = event.target.closest("p");
  if (item) chooseUnit(items.indexOf(item));
});
$("controls").addEventListener("change", ({ target: { id, value } }) => {
  state[id] = id === "by" ? ["unit", "token"][value] : Number(value);
  if (id === "view") openView();
  showView();
});
addEventListener("resize", draw);

const amount = `${S.toLocaleString("en")} ${data.unit}${S === 1 ? "" : "s"}`;
const texts = { document: data.document, note: data.note, "source-title": `Source: ${amount}` };
texts.about = `${data.model}: ${amount}${data.target.length ? `, ${data.target.length} tokens of output` : ""}`;
for (const [id, text] of Object.entries(texts)) $(id).textContent = text;
$("note").hidden = !data.note;
document.title = `${data.document} – hat look`;
$("statements").append(...data.statements.map((text) => make("li", {}, text)));
const items = data.source.map((_, unit) => {
  return make("p", {}, make("span", { className: "number" }, unit + 1), ...textOf(unit));
});
for (let i = 0; i < S; i += BLOCK) $("source").append(make("div", {}, ...items.slice(i, i + BLOCK)));
openView();
showView();
