function render({ model, el }) {
  stage(el, "lm-cls");
  const [tokens, weights, special] = ["tokens", "weights", "special"].map((name) => model.get(name));
  const heads = weights[0].length;
  const status = statusLine();
  const mean = button("mean over heads", () => update(model, { head: -1 }));
  const words = checkbox("words only, without [CLS] and [SEP]", (on) => update(model, { words_only: on }));

  function panel(count, name, choose) {
    const cells = Array.from({ length: count }, (_, i) => tokens.map(() => h("td", { class: "lm-share", onclick: () => choose(i) })));
    const buttons = cells.map((_, i) => h("button", { type: "button", class: "lm-row", onclick: () => choose(i) }, `${name} ${i + 1}`));
    rove(buttons.map((element) => [element]));
    const caption = h("caption", {});
    const table = h("table", {},
      caption,
      h("thead", {}, h("tr", {}, h("td"), ...tokens.map((token) => h("th", { scope: "col" }, h("span", { class: "lm-up" }, token))))),
      h("tbody", {}, ...cells.map((row, i) => h("tr", {}, h("th", { scope: "row" }, buttons[i]), ...row))));
    return { cells, buttons, caption, table };
  }
  const layers = panel(weights.length, "layer", (layer) => update(model, { layer }));
  const inside = panel(heads, "head", (head) => update(model, { head }));
  el.append(
    h("div", { class: "lm-bar" }, mean, words.element),
    h("div", { class: "lm-panels" }, layers.table, inside.table),
    h("p", { class: "lm-quiet" }, "Numbers are per cent of [CLS]'s attention. Choose a layer on the left, a head on the right."),
    status,
  );

  // A row of weights as it is drawn: all tokens, or the words alone with a sum of 1.
  function shown(row) {
    if (!model.get("words_only")) return row;
    const open = row.map((weight, j) => (special[j] ? 0 : weight));
    const total = open.reduce((sum, weight) => sum + weight, 0);
    return open.map((weight) => (total > 0 ? weight / total : 0));
  }
  const average = (rows) => tokens.map((_, j) => rows.reduce((sum, row) => sum + row[j], 0) / rows.length);

  function paint(part, rows, chosen) {
    rows.forEach((row, i) => {
      set(part.buttons[i], { "aria-pressed": String(i === chosen) });
      part.cells[i].forEach((cell, j) => {
        cell.className = `lm-share${i === chosen ? " lm-chosen" : ""}${row[j] > 0.7 ? " lm-strong" : ""}`;
        cell.style.background = shade(row[j]);
        cell.textContent = Math.round(100 * row[j]);
      });
    });
  }

  function draw() {
    const [layer, head, only] = ["layer", "head", "words_only"].map((name) => model.get(name));
    set(mean, { "aria-pressed": String(head < 0) });
    words.move(only);
    const left = weights.map((rows) => shown(head < 0 ? average(rows) : rows[head]));
    paint(layers, left, layer);
    paint(inside, weights[layer].map(shown), head);
    const who = head < 0 ? `mean over ${plural(heads, "head")}` : `head ${head + 1}`;
    layers.caption.textContent = `every layer, ${who}`;
    inside.caption.textContent = `layer ${layer + 1}, every head`;
    const row = left[layer];
    const order = row.map((_, j) => j).sort((a, b) => row[b] - row[a]);
    const rest = row.reduce((sum, weight, j) => sum + (special[j] ? weight : 0), 0);
    status.textContent = `Layer ${layer + 1}, ${who}: [CLS] looks most at ${quoted(tokens[order[0]])} (${row[order[0]].toFixed(2)}), ` +
      `then at ${quoted(tokens[order[1]])} (${row[order[1]].toFixed(2)}). ` +
      (only ? "[CLS] and [SEP] are left out; the words share everything." : `[CLS] and [SEP] get ${rest.toFixed(2)} of it, all words ${(1 - rest).toFixed(2)}.`);
  }
  return follow(model, ["layer", "head", "words_only"], draw);
}

export default { render };
