const LIMIT = 6;
const PAIRS = [
  { label: "column + row", shapes: [[5, 1], [7]] },
  { label: "scores + causal mask", shapes: [[2, 3, 5, 5], [5, 5]] },
  { label: "scores + padding mask", shapes: [[2, 3, 5, 7], [2, 1, 1, 7]] },
  { label: "row maximum without keepdims", shapes: [[5, 7], [5]] },
  { label: "silent mistake: (5, 1) − (5,)", shapes: [[5, 1], [5]] },
];

const written = (shape) => (shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`);

// "(5, 1)", "5, 1" or "5 1" to [5, 1]; null if it is no shape.
function read(text) {
  const inner = text.trim().replace(/^[([]/, "").replace(/[)\]]$/, "").trim();
  if (inner === "") return [];
  const parts = inner.replace(/,\s*$/, "").split(/\s*,\s*|\s+/);
  if (parts.length > LIMIT || !parts.every((part) => /^\d{1,6}$/.test(part))) return null;
  return parts.map(Number);
}

// Axes from the right: { back, first, second, size, clash }; a missing axis is null.
function align(first, second) {
  const axes = [];
  for (let back = 1; back <= Math.max(first.length, second.length); back++) {
    const [a, b] = [first[first.length - back] ?? null, second[second.length - back] ?? null];
    const [x, y] = [a ?? 1, b ?? 1];
    const clash = x !== y && x !== 1 && y !== 1;
    axes.unshift({ back, first: a, second: b, size: x === 1 ? y : x, clash });
  }
  return axes;
}

function render({ model, el }) {
  stage(el, "lm-broadcast");
  const fields = [
    { name: "first_shape", label: "first shape" },
    { name: "second_shape", label: "second shape" },
  ].map(({ name, label }) => {
    const input = h("input", { type: "text", size: 14, spellcheck: "false", autocomplete: "off" });
    input.addEventListener("input", () => {
      const shape = read(input.value);
      set(input, { "aria-invalid": shape === null ? "true" : null });
      if (shape === null) {
        status.textContent = `The ${label} is not readable: write up to ${LIMIT} whole numbers ` +
          "with commas between them, such as 5, 1.";
      } else update(model, { [name]: shape });
    });
    return { name, input, element: h("label", { class: "lm-field" }, h("span", {}, label), input) };
  });
  const presets = PAIRS.map(({ label, shapes }) =>
    button(label, () => update(model, { first_shape: shapes[0], second_shape: shapes[1] })),
  );
  const picture = h("table", { "aria-label": "axes of both shapes and of the result" });
  const status = statusLine();
  el.append(
    h("div", { class: "lm-bar" }, ...fields.map((field) => field.element)),
    h("div", { class: "lm-bar lm-presets" }, h("span", {}, "Try:"), ...presets),
    picture,
    status,
  );

  const box = (text, kind, label) =>
    h("td", {}, h("span", { class: `lm-axis ${kind}`, "aria-label": label, role: "img" }, text));
  const spacer = () => h("td");
  function operand(size, { size: result, clash }) {
    const stretched = (text) => (clash || result === 1 ? text : `${text} → ${result}`);
    if (size === null) return box(stretched("1"), "lm-missing", `missing, counts as 1${result === 1 ? "" : `, stretches to ${result}`}`);
    if (clash) return box(size, "lm-clash", `${size}, clashes`);
    if (size !== result) return box(stretched("1"), "lm-stretch", `${size}, stretches to ${result}`);
    return box(size, "", `${size}`);
  }

  function draw() {
    const [first, second] = [model.get("first_shape"), model.get("second_shape")];
    const axes = align(first, second);
    fields.forEach(({ name, input }) => {
      const shape = model.get(name);
      if (JSON.stringify(read(input.value)) !== JSON.stringify(shape) || input.value === "") {
        input.value = written(shape);
      }
      set(input, { "aria-invalid": null });
    });
    const row = (title, cells, end) => h("tr", {}, h("th", { scope: "row" }, title), ...cells, end);
    const shapeText = (text) => h("td", { class: "lm-shape" }, text);
    const clashes = axes.filter((axis) => axis.clash);
    picture.replaceChildren(
      h("thead", {}, row("axis", axes.map(({ back }) => h("th", { scope: "col" }, `−${back}`)), spacer())),
      h("tbody", {},
        row("first", axes.map((axis) => operand(axis.first, axis)), shapeText(written(first))),
        row("second", axes.map((axis) => operand(axis.second, axis)), shapeText(written(second))),
        row("result", axes.map(({ size, clash }) =>
          clash ? box("✗", "lm-clash", "clash") : box(size, "lm-result", `${size}`)),
        shapeText(clashes.length ? "no common shape" : written(axes.map((axis) => axis.size))))),
    );
    status.textContent = clashes.length ? clashing(clashes.at(-1), first, second) : fitting(axes, first, second);
  }

  function clashing({ back, first, second }, one, two) {
    return `Axis −${back} clashes: ${first} against ${second}, and neither is 1. NumPy raises ` +
      `ValueError: operands could not be broadcast together with shapes ${written(one)} ${written(two)}.`;
  }
  function fitting(axes, one, two) {
    const notes = [...axes].reverse().flatMap(({ back, first, second, size }) =>
      [["first", first], ["second", second]].flatMap(([name, own]) => {
        if (own === null) return [`axis −${back}: missing in the ${name}, counts as 1${size === 1 ? "" : ` and stretches to ${size}`}`];
        return own === size ? [] : [`axis −${back}: the ${name}'s 1 stretches to ${size}`];
      }));
    return `${written(one)} and ${written(two)} broadcast to ${written(axes.map((axis) => axis.size))}. ` +
      (notes.length ? `From the right: ${notes.join("; ")}.` : "The shapes agree; nothing stretches.");
  }
  return follow(model, ["first_shape", "second_shape"], draw);
}

export default { render };
