// A unit is a turn, a sentence or a line of the transcript. Passages are [first, last, probability, units]: these are what
// most probably answers, best first, and are called lines.
const N = data.texts.length;
const state = { question: 0, passage: 0, unit: null };
const question = () => data.questions[state.question];
const passages = () => question().passages; // of a question that is not answered, the closest one
const chosen = () => passages()[state.passage];
const clock = (time) => {
  const [hours, minutes, seconds] = [time / 3600, (time / 60) % 60, time % 60].map(Math.floor);
  return `${hours}:${String(minutes).padStart(2, "0")}:${String(seconds).padStart(2, "0")}`;
};
const percent = (x) => `${(100 * x).toFixed(x < 0.0995 ? 1 : 0)} %`;
const count = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
const timeOf = (unit) => (data.starts[unit] == null ? "" : clock(data.starts[unit]));
const nameOf = (unit) => data.speakers[unit] ?? "";

// ---- The transcript
const items = data.texts.map((text, unit) => make("p", {},
  make("span", { className: "number" }, unit + 1),
  ...(data.starts.length ? [make("span", { className: "time" }, timeOf(unit))] : []),
  ...(data.speakers.length ? [make("span", { className: "speaker" }, nameOf(unit))] : []),
  make("span", { className: "text" }, text)));
const painted = new Array(N).fill("");
function paint() {
  const names = new Array(N).fill("");
  const [first, last, , lines] = chosen();
  for (const [first, last] of question().answered ? passages() : []) names.fill("marked", first, last + 1);
  names.fill("shown", first, last + 1);
  lines.forEach((unit, place) => { names[unit] = place || !question().answered ? "shown line" : "shown line best"; });
  names.forEach((name, unit) => { if (painted[unit] !== name) items[unit].className = painted[unit] = name; });
}
function point(unit) {
  if (state.unit !== null) items[state.unit].classList.remove("here");
  state.unit = unit;
  if (unit !== null) items[unit].classList.add("here");
}

// ---- The bar
function draw() {
  const canvas = $("bar").firstChild, box = canvas.getBoundingClientRect(), scale = devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(box.width * scale));
  canvas.height = Math.max(1, Math.round(box.height * scale));
  const pen = canvas.getContext("2d"), style = getComputedStyle(document.body);
  const [accent, quiet, text, mark] = ["--accent", "--quiet", "--text", "--mark"].map((name) => style.getPropertyValue(name));
  const { width, height } = canvas, { probabilities: values, threshold, answered } = question(), lines = new Set(chosen()[3]);
  const most = answered ? values.reduce((most, x) => Math.max(most, x ?? 0), threshold) || 1 : 1; // small ones stay small
  const columns = new Map(), strong = new Set(); // the greatest probability of each column of pixels, and which stand out
  values.forEach((value, unit) => {
    const from = Math.floor((unit / N) * width), to = Math.max(from + 1, Math.floor(((unit + 1) / N) * width));
    for (let x = from; x < to; x++) {
      columns.set(x, Math.max(columns.get(x) ?? 0, value ?? 0));
      if (lines.has(unit) || (answered && value >= threshold)) strong.add(x);
    }
  });
  const high = (value) => Math.round((0.94 * value * height) / most);
  pen.fillStyle = mark;
  for (const [first, last] of passages()) pen.fillRect((first / N) * width, 0, ((last + 1 - first) / N) * width, height);
  for (const [x, value] of columns) {
    pen.fillStyle = strong.has(x) ? accent : quiet;
    pen.fillRect(x, height - high(value), 1, high(value));
  }
  const [first, last] = chosen(), left = (first / N) * width;
  pen.fillStyle = pen.strokeStyle = text;
  pen.fillRect(left, 0, Math.max(2 * scale, ((last + 1) / N) * width - left), 3 * scale);
  if (!answered) return;
  pen.setLineDash([4 * scale, 4 * scale]);
  pen.beginPath();
  pen.moveTo(0, height - high(threshold));
  pen.lineTo(width, height - high(threshold));
  pen.stroke();
}
const unitAt = ({ clientX }) => {
  const box = $("bar").firstChild.getBoundingClientRect();
  return Math.min(N - 1, Math.max(0, Math.floor(((clientX - box.left) / box.width) * N)));
};
function describe(unit) {
  const value = question().probabilities[unit];
  const parts = [`${data.unit} ${unit + 1}`, timeOf(unit), nameOf(unit), value == null ? "no text" : percent(value)];
  $("under").replaceChildren(...parts.filter(Boolean).flatMap((part, n) => [n ? " · " : "", make("bdi", {}, part)]));
}

// ---- What is chosen
function placeOf([first, last]) {
  return first === last ? `${data.unit} ${first + 1}` : `${data.unit}s ${first + 1}–${last + 1}`;
}
function speakersOf([first, last]) {
  return [...new Set(data.speakers.slice(first, last + 1).filter(Boolean))].join(", ");
}
/** Number, time, speaker and text of a line. */
function excerptOf(unit) {
  const parts = [unit + 1, timeOf(unit), nameOf(unit)].filter(Boolean);
  return make("span", { className: "excerpt" }, make("span", { className: "number" }, parts.join(" · ")), " ",
    make("bdi", {}, data.texts[unit]));
}
function chooseQuestion(number) {
  Object.assign(state, { question: number, passage: 0 });
  point(null);
  $("question").value = number;
  const { question: text, answered, passages: all, ofLines } = question();
  $("asked").textContent = text;
  $("note").hidden = answered;
  $("note").textContent = answered ? "" : "No passage answers this question. This is the closest one.";
  $("passages").replaceChildren(...all.map((passage, rank) => {
    const place = [make("b", {}, answered ? `${rank + 1}` : "–"), make("b", {}, percent(passage[2])), placeOf(passage),
      timeOf(passage[0]), speakersOf(passage)].filter(Boolean);
    const button = make("button", { type: "button", onclick: () => showPassage(rank) },
      make("span", { className: "place" }, ...place.map((part) => (part.nodeType ? part : make("span", {}, part)))),
      ...passage[3].map(excerptOf));
    return make("li", {}, button);
  }));
  const found = answered ? count(all.length, "passage") : "no passage answers";
  $("bar").setAttribute("aria-label", `Probability of ${ofLines ? "lines" : "passages"} along the transcript: ${found}`);
  choosePassage(0);
}
function choosePassage(rank) {
  state.passage = rank;
  const list = $("passages");
  [...list.children].forEach((item, number) => {
    if (number === rank) item.firstChild.setAttribute("aria-current", "true");
    else item.firstChild.removeAttribute("aria-current");
  });
  const item = list.children[rank]; // the list alone scrolls, not the page
  if (item.offsetTop < list.scrollTop + list.offsetTop) list.scrollTop = item.offsetTop - list.offsetTop;
  const below = item.offsetTop + item.offsetHeight - list.offsetTop - list.clientHeight;
  if (below > list.scrollTop) list.scrollTop = below;
  $("position").textContent = question().answered ? `${rank + 1} of ${count(passages().length, "passage")}` : "closest";
  $("previous").disabled = rank === 0;
  $("next").disabled = rank === passages().length - 1;
  point(null);
  paint();
  draw();
  const [first, , , [best]] = chosen();
  describe(best);
  scrollInside(best - first < 4 ? first : best);
}
/** Chooses a passage and, where the transcript is below the window, scrolls to it. */
function showPassage(rank) {
  choosePassage(rank);
  $("reading").scrollIntoView({ block: "nearest" });
}
function scrollInside(unit) {
  const box = $("transcript");
  for (let i = 0; i < 3; i++) { // blocks that become visible get their real heights
    box.scrollTop += items[unit].getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 5;
  }
}

// ---- Events
$("question").addEventListener("change", ({ target }) => chooseQuestion(Number(target.value)));
$("controls").addEventListener("submit", (event) => event.preventDefault());
const step = (by) => {
  const rank = state.passage + by;
  if (rank >= 0 && rank < passages().length) showPassage(rank);
};
$("next").addEventListener("click", () => step(1));
$("previous").addEventListener("click", () => step(-1));
$("bar").addEventListener("click", (event) => {
  const unit = unitAt(event), inside = passages().findIndex(([first, last]) => unit >= first && unit <= last);
  if (inside >= 0) choosePassage(inside);
  point(unit);
  describe(unit);
  scrollInside(unit);
  $("reading").scrollIntoView({ block: "nearest" });
});
$("bar").addEventListener("mousemove", (event) => describe(unitAt(event)));
$("bar").addEventListener("mouseleave", () => describe(state.unit ?? chosen()[3][0]));
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "n" || event.key === "p") {
    if (event.target.tagName === "SELECT" && event.target.options.length > 1) event.preventDefault(); // no typing ahead
    step(event.key === "n" ? 1 : -1);
  }
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key], next = state.question + by;
  if (!by || event.target.tagName === "SELECT" || !(next in data.questions)) return;
  event.preventDefault();
  chooseQuestion(next);
});
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

$("document").textContent = data.document;
$("about").textContent = `${data.about} – ${data.model}`;
$("reading-title").textContent = `Transcript: ${count(N, data.unit)}`;
document.title = `${data.document} – hat ask`;
$("judges").hidden = data.judges;
$("question").append(...data.questions.map(({ question: text }, number) => new Option(text, number)));
$("transcript").classList.toggle("timed", data.starts.length > 0);
$("transcript").classList.toggle("named", data.speakers.length > 0);
for (let i = 0; i < N; i += BLOCK) $("transcript").append(make("div", {}, ...items.slice(i, i + BLOCK)));
const ends = $("ends").children;
ends[0].textContent = timeOf(0) || `${data.unit} 1`;
ends[2].textContent = timeOf(N - 1) || `${data.unit} ${N}`;
chooseQuestion(0);
