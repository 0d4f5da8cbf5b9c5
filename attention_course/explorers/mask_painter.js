const PRESETS = {
  causal: { label: "causal", open: (i, j) => j <= i },
  padding: { label: "padding", open: (i, j, keys, padding) => j < keys - padding },
  none: { label: "none (all open)", open: () => true },
};

function render({ model, el }) {
  stage(el, "lm-mask");
  const [scores, values] = [model.get("scores"), model.get("values")];
  const [queries, keys] = [model.get("query_tokens"), model.get("key_tokens")];
  let brush = true; // what dragging paints
  let news = ""; // what the reader has just done, in words
  let before = null; // the outputs of the last drawing

  const preset = (name) =>
    queries.map((_, i) =>
      keys.map((_, j) => PRESETS[name].open(i, j, keys.length, model.get("padding"))),
    );
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const isOpen = (i, j) => model.get("mask")[i][j];

  function paint(i, j, open) {
    if (isOpen(i, j) === open) return;
    const mask = model.get("mask").map((row) => [...row]);
    mask[i][j] = open;
    const may = open ? "may now attend to" : "may no longer attend to";
    news = `${quoted(queries[i])} ${may} ${quoted(keys[j])}. `;
    update(model, { mask });
  }

  const presets = Object.keys(PRESETS).map((name) =>
    button(PRESETS[name].label, () => {
      news = `Preset “${PRESETS[name].label}”. `;
      update(model, { mask: preset(name) });
    }),
  );

  // One table: mask entries (buttons), weights, outputs. A narrow empty column parts them.
  const switches = queries.map((_, i) =>
    keys.map((_, j) =>
      h("button", {
        type: "button",
        class: "lm-entry",
        onpointerdown: (event) => {
          event.currentTarget.releasePointerCapture?.(event.pointerId);
          brush = !isOpen(i, j);
          paint(i, j, brush);
        },
        onpointerenter: (event) => event.buttons & 1 && paint(i, j, brush),
        onclick: (event) => event.detail === 0 && paint(i, j, !isOpen(i, j)), // keyboard
      }),
    ),
  );
  const weightCells = queries.map(() => keys.map(() => h("td", { class: "lm-weight" })));
  const outputCells = queries.map(() => values[0].map(() => h("td", { class: "lm-number" })));
  const marks = queries.map(() => h("td", { class: "lm-mark" }));
  const gap = () => h("td", { class: "lm-gap" });
  const heading = (span, text) => h("th", { colspan: span, scope: "colgroup" }, text);
  const names = (list) => list.map((name) => h("th", { scope: "col" }, name));
  const columns = values[0].map((_, k) => `${k + 1}`);

  const table = h(
    "table",
    { "aria-label": "mask, weights and outputs, one row for each query" },
    h(
      "thead",
      {},
      h("tr", {}, h("td"), heading(keys.length, "scores, masked"), gap(),
        heading(keys.length, "weights"), gap(), heading(columns.length, "output"), h("td")),
      h("tr", {}, h("td", { class: "lm-quiet" }, "query \\ key"), ...names(keys), gap(),
        ...names(keys), gap(), ...names(columns), h("td")),
    ),
    h(
      "tbody",
      {},
      ...queries.map((query, i) =>
        h("tr", {}, h("th", { scope: "row" }, query), ...switches[i].map((entry) => h("td", {}, entry)),
          gap(), ...weightCells[i], gap(), ...outputCells[i], marks[i]),
      ),
    ),
  );
  const largest = Math.max(...values.flat().map(Math.abs), 1e-9);
  const tint = (cell, value) => {
    cell.textContent = fixed(value);
    const hue = value < 0 ? "var(--lm-orange)" : "var(--lm-blue)";
    const part = Math.round((45 * Math.abs(value)) / largest);
    cell.style.background = `color-mix(in srgb, ${hue} ${part}%, var(--lm-paper))`;
    return cell;
  };
  const valueTable = h(
    "table",
    { "aria-label": "values, one row for each key" },
    h("thead", {}, h("tr", {}, h("td"), heading(columns.length, "values")),
      h("tr", {}, h("td", { class: "lm-quiet" }, "key"), ...names(columns))),
    h("tbody", {}, ...keys.map((key, j) =>
      h("tr", {}, h("th", { scope: "row" }, key),
        ...values[j].map((value) => tint(h("td", { class: "lm-number" }), value))))),
  );

  const status = statusLine();
  el.append(
    h("div", { class: "lm-bar" }, h("span", {}, "Mask:"), ...presets,
      h("span", { class: "lm-quiet" }, "click or drag over scores; arrow keys and space work too")),
    h("div", { class: "lm-panels" }, table, valueTable),
    status,
  );
  rove(switches);

  function draw() {
    const mask = model.get("mask");
    const weights = scores.map((row, i) => softmax(row, mask[i]));
    const outputs = weights.map((row) => mixture(row, values));
    const empty = queries.filter((_, i) => !mask[i].some(Boolean));
    const moved = outputs.map((row, i) => before && row.some((v, k) => Math.abs(v - before[i][k]) > 1e-9));
    queries.forEach((query, i) => {
      keys.forEach((key, j) => {
        const open = mask[i][j];
        switches[i][j].textContent = open ? fixed(scores[i][j], 1) : "−∞";
        set(switches[i][j], {
          "aria-pressed": String(!open),
          "aria-label": `mask query ${query}, key ${key}: ${open ? `score ${fixed(scores[i][j], 1)}` : "closed"}`,
        });
        const [cell, weight] = [weightCells[i][j], weights[i][j]];
        cell.textContent = open ? fixed(weight) : "0";
        cell.classList.toggle("lm-closed", !open);
        cell.classList.toggle("lm-strong", weight > 0.8);
        cell.style.background = shade(weight);
      });
      outputCells[i].forEach((cell, k) => tint(cell, outputs[i][k]).classList.toggle("lm-moved", moved[i]));
      marks[i].textContent = moved[i] ? "changed" : "";
    });
    const current = Object.keys(PRESETS).find((name) => same(preset(name), mask));
    presets.forEach((item, n) => item.setAttribute("aria-pressed", String(Object.keys(PRESETS)[n] === current)));
    status.textContent = news + (before ? changes(moved) : opening(current)) + zeros(empty);
    news = "";
    before = outputs;
  }

  function opening(current) {
    const closed = model.get("mask").flat().filter((open) => !open).length;
    const name = current ? `Mask “${PRESETS[current].label}”` : "Your own mask";
    return `${name}: ${closed} of ${queries.length * keys.length} scores are −∞, their weights exactly 0, ` +
      "and the open weights of each row still sum to 1. ";
  }
  function changes(moved) {
    const rows = queries.filter((_, i) => moved[i]);
    if (!rows.length) return "No output row changed. ";
    return `Changed output ${rows.length === 1 ? "row" : "rows"}: ${rows.map(quoted).join(", ")}; ` +
      `the other ${queries.length - rows.length} stayed as they were. `;
  }
  function zeros(empty) {
    if (!empty.length) return "";
    return `No open key for ${empty.map(quoted).join(", ")}: softmax alone would give NaN; ` +
      "this course's convention is zero weights and a zero output.";
  }
  return follow(model, ["mask"], draw);
}

export default { render };
