function render({ model, el }) {
  stage(el, "lm-orders");
  const tokens = model.get("tokens");
  const choose = (place) => update(model, { place });
  const status = statusLine();
  const move = (by) => () => {
    const [order, place] = [[...model.get("order")], model.get("place")];
    const step = order.indexOf(place);
    const other = step + by;
    if (other < 0 || other >= order.length) return;
    [order[step], order[other]] = [order[other], order[step]];
    update(model, { order });
  };
  const earlier = button("predict it earlier", move(-1));
  const later = button("predict it later", move(1));
  const mixed = button("mix", () => {
    const order = tokens.map((_, place) => place);
    for (let i = order.length - 1; i > 0; i -= 1) {
      const j = Math.floor(Math.random() * (i + 1));
      [order[i], order[j]] = [order[j], order[i]];
    }
    update(model, { order });
  });
  const straight = button("left to right", () => update(model, { order: tokens.map((_, place) => place) }));

  const words = tokens.map((token, place) => {
    const step = h("span", { class: "lm-step" });
    return { step, element: h("button", { type: "button", class: "lm-word", onclick: () => choose(place) }, token, step) };
  });
  rove([words.map((word) => word.element)]);
  const panels = ["content", "query"].map((name) => {
    const cells = tokens.map((_, i) => tokens.map(() => h("td", { class: "lm-see", onclick: () => choose(i) })));
    const rows = tokens.map((token, i) => h("tr", {}, h("th", { scope: "row" }, token), ...cells[i]));
    const table = h("table", { "aria-label": `${name} mask: rows are the places that look, columns what they see` },
      h("caption", {}, `${name} stream`),
      h("thead", {}, h("tr", {}, h("td"), ...tokens.map((token) => h("th", { scope: "col" }, h("span", {}, token))))),
      h("tbody", {}, ...rows));
    return { name, cells, rows, table };
  });
  el.append(
    h("div", { class: "lm-bar" }, h("span", {}, "choose a word (the number is its step):"), ...words.map((word) => word.element)),
    h("div", { class: "lm-bar" }, earlier, later, mixed, straight),
    h("div", { class: "lm-panels" }, ...panels.map((panel) => panel.table)),
    h("p", { class: "lm-key" },
      h("span", { class: "lm-see lm-open" }), " seen, ",
      h("span", { class: "lm-see lm-itself" }), " itself, ",
      h("span", { class: "lm-see lm-shut" }), " hidden"),
    status,
  );

  function draw() {
    const [order, place] = [model.get("order"), model.get("place")];
    const step = tokens.map((_, p) => order.indexOf(p));
    words.forEach((word, p) => {
      word.step.textContent = `${step[p] + 1}`;
      set(word.element, { "aria-pressed": String(p === place), "aria-label": `${tokens[p]}, predicted as number ${step[p] + 1}` });
    });
    panels.forEach((panel) => panel.cells.forEach((row, i) => {
      panel.rows[i].classList.toggle("lm-chosen", i === place);
      row.forEach((cell, j) => {
        const itself = i === j && panel.name === "content";
        const open = step[j] < step[i] || itself;
        cell.className = `lm-see ${itself ? "lm-itself" : open ? "lm-open" : "lm-shut"}`;
        set(cell, { "data-open": String(open), "aria-label": `${tokens[i]} ${open ? "sees" : "does not see"} ${tokens[j]}` });
      });
    }));
    const seen = order.slice(0, step[place]).map((p) => quoted(tokens[p]));
    status.textContent = `${quoted(tokens[place])} is predicted as number ${step[place] + 1} of ${tokens.length}, from ` +
      `${seen.length ? seen.join(", ") : "nothing but its place"}. Its content vector also holds the word itself` +
      `${step[place] < tokens.length - 1 ? `, to be read by ${plural(tokens.length - 1 - step[place], "later word")}.` : "; no later word reads it."}`;
  }
  return follow(model, ["order", "place"], draw);
}

export default { render };
