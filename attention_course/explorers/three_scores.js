function render({ model, el }) {
  stage(el, "lm-three");
  const most = 4;
  const tokens = model.get("tokens");
  const [queries, keys, asking, asked] =
    ["content_queries", "content_keys", "position_queries", "position_keys"].map((name) => model.get(name));
  const dot = (a, b) => a.reduce((sum, value, k) => sum + value * b[k], 0);
  const choose = (row) => update(model, { row });
  const status = statusLine();

  const limit = slider({
    label: "limit k of distances", min: 1, max: most, step: 1, show: (k) => `${k}`,
    change: (largest) => update(model, { largest }),
  });
  const names = ["content to content", "content to position", "position to content"];
  const switches = names.map((name, part) => checkbox(name, (on) => {
    const parts = [...model.get("parts")];
    parts[part] = on;
    update(model, { parts });
  }));
  const panels = [...names, "weights"].map((name) => {
    const cells = tokens.map((_, i) => tokens.map(() => h("td", { class: "lm-number", onclick: () => choose(i) })));
    const heads = tokens.map((token, i) =>
      h("button", { type: "button", class: "lm-row", onclick: () => choose(i) }, token));
    rove(heads.map((head) => [head]));
    const table = h("table", { "aria-label": `${name}: rows are queries, columns keys` },
      h("caption", {}, name),
      h("thead", {}, h("tr", {}, h("td"), ...tokens.map((token) => h("th", { scope: "col" }, token)))),
      h("tbody", {}, ...tokens.map((_, i) => h("tr", {}, h("th", { scope: "row" }, heads[i]), ...cells[i]))));
    return { name, cells, heads, table };
  });
  el.append(
    h("div", { class: "lm-bar" }, limit.element, h("span", {}, "in the sum:"), ...switches.map((one) => one.element)),
    h("div", { class: "lm-panels" }, ...panels.map((panel) => panel.table)),
    h("p", { class: "lm-quiet" }, "Choose a row. Blue: positive, orange: negative; all three maps have the same scale."),
    status,
  );

  const signed = (value, scale) => {
    const share = Math.round(85 * Math.min(1, Math.abs(value) / scale));
    return `color-mix(in srgb, var(${value < 0 ? "--lm-orange" : "--lm-fill"}) ${share}%, var(--lm-paper))`;
  };

  function draw() {
    const [largest, on, row] = ["largest", "parts", "row"].map((name) => model.get(name));
    limit.move(largest);
    switches.forEach((one, part) => one.move(on[part]));
    const number = (i, j) => Math.max(-largest, Math.min(largest - 1, i - j)) + most;
    const score = [
      (i, j) => dot(queries[i], keys[j]),
      (i, j) => dot(queries[i], asked[number(i, j)]),
      (i, j) => dot(keys[j], asking[number(j, i)]),
    ];
    const maps = score.map((of) => tokens.map((_, i) => tokens.map((__, j) => of(i, j))));
    const terms = on.filter(Boolean).length;
    const weights = tokens.map((_, i) => softmax(tokens.map((__, j) =>
      maps.reduce((sum, map, part) => sum + (on[part] ? map[i][j] : 0), 0) / Math.sqrt(Math.max(terms, 1) * queries[0].length))));
    const scale = Math.max(...maps.flat(2).map(Math.abs));
    panels.forEach((panel, p) => panel.cells.forEach((cells, i) => {
      set(panel.heads[i], { "aria-pressed": String(i === row) });
      cells.forEach((cell, j) => {
        const value = p < 3 ? maps[p][i][j] : weights[i][j];
        const ink = p < 3 ? Math.abs(value) / scale > 0.9 : value > 0.75;
        cell.className = `lm-number${i === row ? " lm-chosen" : ""}${ink ? " lm-strong" : ""}${p < 3 && !on[p] ? " lm-off" : ""}`;
        cell.style.background = p < 3 ? signed(value, scale) : shade(value);
        cell.textContent = fixed(value, p < 3 ? 1 : 2);
      });
    }));
    const best = weights[row].indexOf(Math.max(...weights[row]));
    const alike = tokens.filter((_, j) => tokens.some((__, other) => other !== j && number(row, other) === number(row, j))).length;
    status.textContent = `${quoted(tokens[row])} at place ${row} gives most weight, ${fixed(weights[row][best])}, to ${quoted(tokens[best])} at place ${best}. ` +
      `With k = ${largest}, ${alike} of its ${tokens.length} distances share a number with another: in “content to position” those entries of its row are equal. ` +
      (terms ? `The sum of ${plural(terms, "part")} is divided by √(${terms}d).` : "No part is in the sum: all weights are equal.");
  }
  return follow(model, ["largest", "parts", "row"], draw);
}

export default { render };
