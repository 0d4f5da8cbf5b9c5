const PARTS = ["query", "key", "value"];
const HUES = ["var(--lm-blue)", "var(--lm-orange)", "#2a8a4a"];
const [WIDTH, TOP, GAP] = [900, 46, 10]; // of the drawing; room above it; between two chunks

function render({ model, el }) {
  stage(el, "lm-fused");
  const moved = (name) => (value) => {
    const next = { d_model: model.get("d_model"), heads: model.get("heads"), [name]: value };
    const d = next.d_model;
    update(model, {
      ...next,
      row: Math.min(model.get("row"), d - 1),
      column: Math.min(model.get("column"), 3 * d - 1),
    });
  };
  const widths = slider({
    label: "d_model", min: 2, max: model.get("widest"), step: 1, show: String, change: moved("d_model"),
  });
  const counts = slider({
    label: "heads h", min: 1, max: 12, step: 1, show: String, change: moved("heads"),
  });
  const drawing = s("svg", { class: "lm-drawing", tabindex: 0, role: "img" });
  const status = statusLine();
  el.append(
    h("div", { class: "lm-bar" }, widths.element, counts.element,
      h("span", { class: "lm-quiet" }, "point at an entry, or click into the matrix and use the arrow keys")),
    drawing,
    status,
  );

  const size = () => (WIDTH - 2 * GAP) / (3 * model.get("d_model")); // of one column
  const left = (column) => column * size() + GAP * Math.floor(column / model.get("d_model"));
  const rowHeight = () => Math.min(size(), 240 / model.get("d_model"));

  function choose(event) {
    const column = event.target.dataset?.column;
    if (column === undefined) return;
    const box = event.target.getBoundingClientRect();
    const d = model.get("d_model");
    const row = Math.floor(((event.clientY - box.top) / box.height) * d);
    update(model, { column: Number(column), row: Math.max(0, Math.min(row, d - 1)) });
  }
  drawing.addEventListener("pointermove", choose);
  drawing.addEventListener("click", choose);
  drawing.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    const within = (value, count) => Math.max(0, Math.min(value, count - 1));
    const d = model.get("d_model");
    update(model, {
      row: within(model.get("row") + step[0], d),
      column: within(model.get("column") + step[1], 3 * d),
    });
  });

  // Part, head and feature of a column; head is null where no head owns it.
  function owner(column) {
    const [d, heads] = [model.get("d_model"), model.get("heads")];
    const [part, place] = [Math.floor(column / d), column % d];
    const width = Math.floor(d / heads);
    const head = width > 0 && place < heads * width ? Math.floor(place / width) : null;
    return { part, head, feature: head === null ? null : place % width };
  }

  function draw() {
    const [d, heads, row, column] = ["d_model", "heads", "row", "column"].map((name) => model.get(name));
    const [width, legal] = [Math.floor(d / heads), d % heads === 0];
    widths.move(d);
    counts.move(heads);
    const [step, high] = [size(), rowHeight()];
    const bars = Array.from({ length: 3 * d }, (_, j) => {
      const { part, head } = owner(j);
      const share = head === null ? 0 : 35 + (head % 2) * 40; // neighbouring heads differ
      return s("rect", {
        class: head === null ? "lm-column lm-lost" : "lm-column",
        x: left(j), y: TOP, width: step, height: high * d, "data-column": j,
        style: head === null ? null : `fill: color-mix(in srgb, ${HUES[part]} ${share}%, var(--lm-paper))`,
      });
    });
    const rules = Array.from({ length: d - 1 }, (_, i) =>
      s("line", { class: "lm-rule", x1: 0, x2: WIDTH, y1: TOP + (i + 1) * high, y2: TOP + (i + 1) * high }));
    const partNames = PARTS.map((part, i) =>
      s("text", { class: "lm-part-name", x: left(i * d) + (d * step) / 2, y: 14 }, `${part}: ${d} columns`));
    const headNames = width === 0 ? [] : PARTS.flatMap((_, i) =>
      Array.from({ length: heads }, (_, head) =>
        s("text", { class: "lm-head-name", x: left(i * d + head * width) + (width * step) / 2, y: 36 },
          width * step > 44 ? `head ${head}` : `${head}`)));
    const pattern = s("defs", {},
      s("pattern", { id: "lm-fused-lost", width: 6, height: 6, patternUnits: "userSpaceOnUse" },
        s("path", { d: "M0 6 L6 0", stroke: "currentColor", "stroke-width": 1 })));
    const cross = [
      s("rect", { class: "lm-cross", x: left(column), y: TOP, width: step, height: high * d }),
      s("rect", { class: "lm-chosen", x: left(column), y: TOP + row * high, width: step, height: high }),
    ];
    set(drawing, { viewBox: `0 0 ${WIDTH} ${TOP + high * d + 4}` });
    drawing.replaceChildren(pattern, ...partNames, ...headNames, ...bars, ...rules, ...cross);
    const words = legal ? fitting(d, heads, width, row, column) : refused(d, heads, width);
    set(drawing, { "aria-label": `matrix of ${d} rows and ${3 * d} columns. ${words}` });
    status.textContent = words;
  }

  function fitting(d, heads, width, row, column) {
    const { part, head, feature } = owner(column);
    const rows = width === 1 ? `row ${head}` : `rows ${head * width} to ${head * width + width - 1}`;
    return `Row ${row}, column ${column}: how much feature ${row} of the token adds to its ` +
      `${PARTS[part]}, head ${head}, feature ${feature}. ${plural(heads, "head")} of width ` +
      `${d} / ${heads} = ${width}; what head ${head} finds goes through ${rows} of w_out.`;
  }
  function refused(d, heads, width) {
    const rest = d % heads;
    return `${heads} heads do not divide d_model = ${d}: ${d} = ${heads} · ${width} + ${rest}, so ` +
      `${rest} of every ${d} columns would belong to no head (hatched). Real code raises ValueError.`;
  }
  return follow(model, ["d_model", "heads", "row", "column"], draw);
}

export default { render };
