// Pegasos on 40 rows of the plane, and the page that shows it: docs/pegasos-live.md.
// The steps are those of dualgap.papers.twins.PegasosTwin; the tests compare the numbers.
"use strict";

// x1, x2 and the label of each row; a constant third column stands for the bias.
const ROWS = [
  [-0.71, 2.95, 1], [1.07, 1.30, 1], [0.97, 1.43, 1], [-3.55, -0.35, -1],
  [-0.02, 1.24, -1], [0.37, 0.64, 1], [-0.56, -0.67, -1], [-0.85, -0.62, -1],
  [-0.24, -0.88, -1], [-1.89, -2.98, -1], [-0.69, -1.85, -1], [-0.86, 0.45, -1],
  [-0.25, 1.78, 1], [0.49, 0.56, 1], [0.09, 1.05, 1], [0.23, 0.20, -1],
  [-1.35, -0.84, -1], [0.19, -0.73, 1], [-0.14, -1.74, -1], [-0.63, 1.46, 1],
  [0.10, 1.39, 1], [-1.10, -0.59, -1], [0.76, -0.60, -1], [0.53, 0.47, -1],
  [1.27, -2.45, -1], [1.73, 1.13, 1], [-0.05, -0.42, 1], [1.40, 0.32, 1],
  [2.14, -0.23, 1], [0.49, -0.18, 1], [1.18, 0.60, 1], [-1.39, -1.30, -1],
  [0.49, -1.21, -1], [0.69, 1.06, 1], [0.13, 0.42, 1], [-0.05, -1.15, -1],
  [0.87, -1.98, -1], [-0.61, 0.79, 1], [0.33, 0.64, 1], [-0.95, -1.19, -1],
];
const X = ROWS.map(([x1, x2]) => [x1, x2, 1]), Y = ROWS.map((row) => row[2]);
const N = ROWS.length;

const dot = (a, b) => a.reduce((sum, value, j) => sum + value * b[j], 0);
const clip = (value, most) => Math.min(Math.max(value, 0), most);

// Uniform numbers in [0, 1): mulberry32, so that a seed gives one order everywhere.
function uniform(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let z = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    z = (z + Math.imul(z ^ (z >>> 7), 61 | z)) ^ z;
    return ((z ^ (z >>> 14)) >>> 0) / 4294967296;
  };
}

// Yields batches of k rows: of a new permutation every epoch, of independent draws, or
// of the rows as they come. The last batch of an epoch may be short.
function* batches(order, k, seed) {
  const random = uniform(seed), below = (n) => Math.floor(random() * n);
  const rows = ROWS.map((_, i) => i);
  for (;;) {
    if (order === "permutation")
      for (let i = N - 1; i > 0; --i) {
        const j = below(i + 1);
        [rows[i], rows[j]] = [rows[j], rows[i]];
      }
    if (order === "random") rows.forEach((_, i) => (rows[i] = below(N)));
    for (let begin = 0; begin < N; begin += k) yield rows.slice(begin, begin + k);
  }
}

class Pegasos {
  constructor(lambda, project) {
    Object.assign(this, { lambda, project, t: 0, C: 1 / (lambda * N) });
    this.w = [0, 0, 0];
    this.b = new Array(N).fill(0); // w = sum b_i y_i x_i
  }

  // Step t on the rows A.
  step(A) {
    this.t += 1;
    const eta = 1 / (this.lambda * this.t), keep = 1 - eta * this.lambda;
    const below = A.filter((i) => Y[i] * dot(this.w, X[i]) < 1);
    this.w = this.w.map((value) => keep * value);
    this.b = this.b.map((value) => keep * value);
    for (const i of below) {
      this.w = this.w.map((value, j) => value + (eta / A.length) * Y[i] * X[i][j]);
      this.b[i] += eta / A.length;
    }
    const norm = Math.sqrt(dot(this.w, this.w)), radius = 1 / Math.sqrt(this.lambda);
    if (this.project && norm > radius) {
      this.w = this.w.map((value) => (radius / norm) * value);
      this.b = this.b.map((value) => (radius / norm) * value);
    }
  }

  // lambda/2 |w|^2 + the mean of the losses: above the optimum, wherever w is.
  primal() {
    const losses = X.map((x, i) => Math.max(0, 1 - Y[i] * dot(this.w, x)));
    return (this.lambda / 2) * dot(this.w, this.w) + losses.reduce((a, b) => a + b) / N;
  }

  // The dual objective at b, clipped to the box from 0 to C: below the optimum.
  dual() {
    const a = this.b.map((value) => clip(value, this.C)), w = [0, 0, 0];
    a.forEach((value, i) => X[i].forEach((x, j) => (w[j] += value * Y[i] * x)));
    return this.lambda * (a.reduce((sum, value) => sum + value) - dot(w, w) / 2);
  }
}

// A run, with what the curves show: P and D, and the best of each so far, at steps that
// grow by 2 %.
class Run {
  constructor({ lambda, k, project, order, seed }) {
    this.model = new Pegasos(lambda, project);
    this.order = batches(order, k, seed);
    this.curve = [];
    this.A = [];
  }

  to(steps) {
    while (this.model.t < steps) {
      this.A = this.order.next().value;
      this.model.step(this.A);
      const last = this.curve[this.curve.length - 1] || { t: 0, best: [1, 0] };
      if (this.model.t < steps && this.model.t < last.t * 1.02) continue;
      const P = this.model.primal(), D = this.model.dual();
      const best = [Math.min(P, last.best[0]), Math.max(D, last.best[1])];
      this.curve.push({ t: this.model.t, P, D, best });
    }
    return this;
  }
}

const LONGEST = 100000; // steps
if (typeof module !== "undefined") module.exports = { ROWS, Run, batches };

// --- the page ----------------------------------------------------------------------

const PLANE = 400, WIDTH = 480, HEIGHT = 480, LEFT = 44, RIGHT = 20;
const BOTTOM = 44;
const at = (x) => (PLANE * (x + 4)) / 8;
const across = (t) => LEFT + ((WIDTH - LEFT - RIGHT) * Math.log10(Math.max(t, 1))) / 5;
const up = (value) => 8 + (HEIGHT - BOTTOM - 8) * (1 - clip(value, 1));
const CONTROLS = `
<div class="live-controls">
  <label>λ <input name="lambda" type="range" min="-3" max="0" step="0.25" value="-2">
    <output></output></label>
  <label>k, rows a step <input name="k" type="range" min="1" max="${N}" value="1">
    <output></output></label>
  <label>Order <select name="order"><option value="permutation">new permutation every
    epoch</option><option value="random">independent draws</option><option
    value="cyclic">as the rows come</option></select></label>
  <label><input name="project" type="checkbox"> project onto the ball</label>
  <div><button type="button" name="play">Play</button>
  <button type="button" name="one">One step</button>
  <button type="button" name="epoch">One epoch</button>
  <button type="button" name="again">Start again</button>
  <button type="button" name="seed">Another order</button></div>
</div>
<div class="live-pictures">
  <svg viewBox="0 0 ${PLANE} ${PLANE}" role="img" aria-label="The rows and the line"></svg>
  <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img"
    aria-label="P falls and D rises toward the optimum between them"></svg>
</div>
<p class="live-numbers" role="status"></p>`;

const line = (x1, y1, x2, y2, kind) =>
  `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" class="${kind}"/>`;

// The rows, as full as their alpha_i/C, the batch in circles, the line and its margins.
function plane(run) {
  const { w, b, C } = run.model;
  const marks = ROWS.map(([x1, x2, y], i) => {
    const x = at(x1), z = PLANE - at(x2), full = clip(b[i] / C, 1).toFixed(3);
    const shape = y > 0 ? `<circle cx="${x}" cy="${z}" r="6"`
      : `<rect x="${x - 5.5}" y="${z - 5.5}" width="11" height="11"`;
    return `${shape} class="${y > 0 ? "plus" : "minus"}" fill-opacity="${full}"/>`;
  });
  for (const i of run.A.length < N ? run.A : [])
    marks.push(`<circle cx="${at(ROWS[i][0])}" cy="${PLANE - at(ROWS[i][1])}" r="12"
      class="seen"/>`);
  const size = w[0] * w[0] + w[1] * w[1];
  for (const level of size > 0 ? [-1, 0, 1] : []) {
    // The foot of the line w.x = level, and 12 units along it to both sides.
    const foot = [w[0], w[1]].map((v) => (v * (level - w[2])) / size);
    const along = [-w[1], w[0]].map((v) => (12 * v) / Math.sqrt(size));
    marks.push(line(at(foot[0] - along[0]), PLANE - at(foot[1] - along[1]),
      at(foot[0] + along[0]), PLANE - at(foot[1] + along[1]), level ? "margin" : "cut"));
  }
  return marks.join("");
}

// The best P and the best D so far, the gap between them, and both as they are.
function curves(run) {
  const seen = [{ t: 1, P: 1, D: 0, best: [1, 0] }, ...run.curve];
  const path = (value) => seen.map((s) => `${across(s.t)},${up(value(s))}`);
  const above = path((s) => s.best[0]), under = path((s) => s.best[1]);
  const marks = [`<polygon class="gap" points="${[...above, ...under.reverse()].join(" ")}"/>`];
  for (const [kind, value] of [["above thin", (s) => s.P], ["under thin", (s) => s.D],
    ["above", (s) => s.best[0]], ["under", (s) => s.best[1]]])
    marks.push(`<polyline class="${kind}" points="${path(value).join(" ")}"/>`);
  for (const value of [0, 0.5, 1])
    marks.push(line(LEFT, up(value), WIDTH - RIGHT, up(value), "grid"),
      `<text x="${LEFT - 6}" y="${up(value) + 5}" text-anchor="end">${value}</text>`);
  for (const [power, name] of ["1", "10", "100", "1,000", "10⁴", "10⁵"].entries())
    marks.push(`<text x="${across(10 ** power)}" y="${HEIGHT - BOTTOM + 18}"
      text-anchor="middle">${name}</text>`);
  marks.push(`<text x="${WIDTH / 2}" y="${HEIGHT - 3}" text-anchor="middle">steps</text>`,
    `<text x="${WIDTH - RIGHT}" y="${up(0.9)}" text-anchor="end"
      class="above">P(w), above the optimum</text>`,
    `<text x="${WIDTH - RIGHT}" y="${up(0.06)}" text-anchor="end"
      class="under">D(α), below it</text>`);
  return marks.join("");
}

function numbers(run) {
  const { t, w, b, C, lambda } = run.model, last = run.curve[run.curve.length - 1];
  const [P, D] = last ? last.best : [1, 0];
  const percent = Number(((100 * (P - D)) / D).toPrecision(2));
  const short = percent.toLocaleString("en", { maximumFractionDigits: 6 });
  const gap = D > 0 ? `so at most ${short} % above the optimum` : "so nothing is proved yet";
  const free = b.filter((v) => v > 0 && v < C * (1 - 1e-9)).length;
  const full = b.filter((v) => v >= C * (1 - 1e-9)).length;
  return `Step ${t.toLocaleString("en")}: best P ${P.toFixed(4)}, best D ${D.toFixed(4)},
    ${gap}. |w| is ${Math.sqrt(dot(w, w)).toFixed(2)}, the
    ball's radius ${(1 / Math.sqrt(lambda)).toFixed(2)}. α is C on ${full} of ${N} rows, between
    0 and C on ${free}, and 0 on ${N - full - free}.`;
}

function show(place) {
  place.innerHTML = CONTROLS;
  const find = (name) => place.querySelector(`[name=${name}]`);
  const [left, right] = place.querySelectorAll("svg");
  const told = place.querySelector(".live-numbers");
  let seed = 1, run = null, playing = false;
  const draw = () => {
    left.innerHTML = plane(run);
    right.innerHTML = curves(run);
    // A screen reader speaks only when the picture stands still.
    told.setAttribute("aria-live", playing ? "off" : "polite");
    told.textContent = numbers(run);
  };
  const stop = () => {
    playing = false;
    find("play").textContent = "Play";
  };
  const begin = (steps) => {
    const lambda = 10 ** Number(find("lambda").value), k = Number(find("k").value);
    find("lambda").nextElementSibling.value =
      `${lambda.toPrecision(2)}, C = ${(1 / (lambda * N)).toPrecision(2)}`;
    find("k").nextElementSibling.value = k;
    run = new Run({ lambda, k, project: find("project").checked,
      order: find("order").value, seed }).to(steps);
    draw();
  };
  const go = (steps) => {
    run.to(Math.min(run.model.t + steps, LONGEST));
    draw();
  };
  const frame = () => {
    if (!playing) return;
    go(Math.max(1, Math.floor(run.model.t / 40)));
    if (run.model.t < LONGEST) return requestAnimationFrame(frame);
    stop();
    draw();
  };
  // A changed setting is shown at the same number of steps.
  for (const name of ["lambda", "k", "order", "project"])
    find(name).addEventListener("input", () => begin(run.model.t));
  find("play").addEventListener("click", () => {
    playing = !playing;
    find("play").textContent = playing ? "Pause" : "Play";
    playing ? frame() : draw();
  });
  const press = (name, work) => find(name).addEventListener("click", () => {
    stop();
    work();
  });
  press("one", () => go(1));
  press("epoch", () => go(Math.ceil(N / Number(find("k").value))));
  press("again", () => begin(0));
  press("seed", () => {
    seed += 1;
    begin(run.model.t);
  });
  begin(400);
}

if (typeof document !== "undefined") show(document.getElementById("pegasos-live"));
