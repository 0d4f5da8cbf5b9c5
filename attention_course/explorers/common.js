// Shared by all explorers: the base class puts this text in front of each explorer's own script.

const SVG = "http://www.w3.org/2000/svg";

// h("p", { class: "note" }, "text", child) makes an HTML element, s(...) an SVG one. Strings become
// text and never markup, so a token may hold anything.
const h = (tag, attributes = {}, ...children) =>
  assemble(document.createElement(tag), attributes, children);
const s = (tag, attributes = {}, ...children) =>
  assemble(document.createElementNS(SVG, tag), attributes, children);

function assemble(element, attributes, children) {
  set(element, attributes);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  if (element.matches("input, button, select, [tabindex]")) {
    // Otherwise JupyterLab's command mode takes the arrow keys from this element.
    element.setAttribute("data-lm-suppress-shortcuts", "true");
  }
  return element;
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === null || value === undefined || value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : value);
  }
  return element;
}

// Clears `el`, marks it as an explorer and returns it.
function stage(el, name) {
  el.replaceChildren();
  el.classList.add("lm-explorer", name);
  return el;
}

const statusLine = () => h("p", { class: "lm-status", role: "status", "aria-live": "polite" });

// A labelled range input with its reading beside it. `show` turns the number into words.
function slider({ label, min, max, step, show, change }) {
  const input = h("input", { type: "range", min, max, step });
  const reading = h("span", { class: "lm-value-now", "aria-hidden": "true" }); // said by aria-valuetext
  const element = h("label", { class: "lm-slider" }, h("span", {}, label), input, reading);
  input.addEventListener("input", () => change(Number(input.value)));
  const move = (value) => {
    input.value = value;
    input.setAttribute("aria-valuetext", show(value));
    reading.textContent = show(value);
  };
  return { element, move };
}

function checkbox(label, change) {
  const input = h("input", { type: "checkbox" });
  input.addEventListener("change", () => change(input.checked));
  const element = h("label", { class: "lm-check" }, input, h("span", {}, label));
  return { element, move: (value) => (input.checked = value) };
}

function button(label, click) {
  return h("button", { type: "button", class: "lm-button", onclick: click }, label);
}

// One Tab stop for a whole grid of elements; arrow keys, Home and End walk inside it.
function rove(grid) {
  grid.forEach((row, i) =>
    row.forEach((element, j) => {
      element.setAttribute("tabindex", i === 0 && j === 0 ? 0 : -1);
      element.setAttribute("data-lm-suppress-shortcuts", "true");
      element.addEventListener("focus", () => {
        grid.flat().forEach((other) => other.setAttribute("tabindex", other === element ? 0 : -1));
      });
      element.addEventListener("keydown", (event) => {
        const last = row.length - 1;
        const [down, across] = {
          ArrowUp: [i - 1, j],
          ArrowDown: [i + 1, j],
          ArrowLeft: [i, j - 1],
          ArrowRight: [i, j + 1],
          Home: [i, 0],
          End: [i, last],
        }[event.key] ?? [];
        if (down === undefined) return;
        event.preventDefault();
        grid[down]?.[across]?.focus();
      });
    }),
  );
}

// Draws now and after every change of the named traits (once, however many change together).
// Returns what `render` has to return: the function that stops it.
function follow(model, names, draw) {
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    queueMicrotask(() => {
      waiting = false;
      draw();
    });
  };
  names.forEach((name) => model.on(`change:${name}`, later));
  draw();
  return () => names.forEach((name) => model.off(`change:${name}`, later));
}

function update(model, changes) {
  Object.entries(changes).forEach(([name, value]) => model.set(name, value));
  model.save_changes();
}

// Softmax of the open entries of one row; a row with none open gives zeros.
function softmax(scores, open = scores.map(() => true)) {
  const largest = Math.max(...scores.filter((_, j) => open[j]));
  const powers = scores.map((score, j) => (open[j] ? Math.exp(score - largest) : 0));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => (total > 0 ? power / total : 0));
}

// Entropy in nats; 0 log 0 counts as 0.
const entropy = (weights) =>
  0 - weights.reduce((sum, weight) => sum + (weight > 0 ? weight * Math.log(weight) : 0), 0);

// weights (keys) and vectors (keys, size) to one vector (size).
const mixture = (weights, vectors) =>
  vectors[0].map((_, k) => weights.reduce((sum, weight, j) => sum + weight * vectors[j][k], 0));

// A number with a true minus sign, and no "−0.00".
function fixed(number, digits = 2) {
  const text = Math.abs(number).toFixed(digits);
  return number < 0 && Number(text) !== 0 ? `−${text}` : text;
}

// The background of a cell that shows a weight from 0 to 1.
const shade = (weight) =>
  `color-mix(in srgb, var(--lm-fill) ${Math.round(100 * weight)}%, var(--lm-paper))`;

const quoted = (token) => `“${token}”`;
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
