function render({ model, el }) {
  stage(el, "lm-heads");
  const heads = model.get("heads");
  const buttons = Object.keys(heads).map((name) => button(name, () => update(model, { head: name })));
  const table = h("table", { "aria-label": "tokens of the input, from left to right" });
  const status = statusLine();
  el.append(
    h("div", { class: "lm-bar", role: "group", "aria-label": "head" }, ...buttons),
    table,
    h("p", { class: "lm-quiet" }, h("span", { class: "lm-swatch lm-read" }), " the head reads this vector  ",
      h("span", { class: "lm-swatch lm-loss" }), " a loss compares here"),
    status,
  );

  const line = (name, values, cell) =>
    h("tr", {}, h("th", { scope: "row" }, name), ...values.map(cell));

  function draw() {
    const name = model.get("head");
    const head = heads[name];
    buttons.forEach((element) => set(element, { "aria-pressed": String(element.textContent === name) }));
    const hasLoss = (label) => label !== "" && label !== "−100";
    const losses = head.labels.filter(hasLoss).length;
    table.replaceChildren(h("tbody", {},
      line("label", head.labels, (label) => h("td", { class: hasLoss(label) ? "lm-loss" : "lm-quiet" }, label)),
      line("vector", head.reads, (read) =>
        h("td", { class: read ? "lm-read" : "", "aria-label": read ? "read" : "not read" }, read ? "●" : "○")),
      line("encoder", head.tokens, () => h("td", { class: "lm-quiet" }, "↑")),
      line("token", head.tokens, (token) => h("td", { class: "lm-token" }, token)),
      line("segment", head.segments, (segment) => h("td", { class: "lm-quiet" }, String(segment))),
    ));
    const read = head.reads.filter(Boolean).length;
    status.textContent = `${head.says} The head reads ${plural(read, "vector")} of ${head.tokens.length}; ${losses === 1 ? "1 place has" : `${losses} places have`} a label with a loss.`;
  }
  return follow(model, ["head"], draw);
}

export default { render };
