function render({ model, el }) {
  stage(el, "lm-trio");
  const tokens = model.get("tokens");
  const count = tokens.length;
  const causal = (i, j) => j <= i;
  const whole = (i, j, prefix) => j <= i || j < prefix;
  const ways = [
    { name: "encoder-decoder", open: whole },
    { name: "causal", open: causal },
    { name: "prefix", open: whole },
  ];

  const cut = slider({
    label: "tokens of input (prefix)", min: 1, max: count - 1, step: 1,
    show: (prefix) => `${prefix}`,
    change: (prefix) => update(model, { prefix }),
  });
  const status = statusLine();
  const choose = (place) => update(model, { place });

  const panels = ways.map((way) => {
    const heads = tokens.map((token) => h("th", { scope: "col" }, h("span", {}, token)));
    const cells = tokens.map((_, i) =>
      tokens.map(() => h("td", { class: "lm-see", onclick: () => choose(i) })));
    const names = tokens.map((token, i) =>
      h("button", { type: "button", class: "lm-row", onclick: () => choose(i) }, token));
    const table = h(
      "table",
      { "aria-label": `${way.name}: rows are queries, columns are keys` },
      h("caption", {}, way.name),
      h("thead", {}, h("tr", {}, h("td"), ...heads)),
      h("tbody", {}, ...tokens.map((_, i) =>
        h("tr", {}, h("th", { scope: "row" }, names[i]), ...cells[i]))),
    );
    rove(names.map((name) => [name]));
    return { ...way, table, heads, cells, names };
  });
  el.append(
    h("div", { class: "lm-bar" }, cut.element,
      h("span", { class: "lm-quiet" }, "choose a row to read who sees whom; arrow keys walk")),
    h("div", { class: "lm-panels" }, ...panels.map((panel) => panel.table)),
    h("p", { class: "lm-key" },
      h("span", { class: "lm-see lm-self" }), " in one network, ",
      h("span", { class: "lm-see lm-cross" }), " by cross-attention, ",
      h("span", { class: "lm-see lm-extra" }), " what a causal model hides"),
    status,
  );

  function draw() {
    const [prefix, place] = [model.get("prefix"), model.get("place")];
    cut.move(prefix);
    for (const panel of panels) {
      panel.cells.forEach((row, i) => row.forEach((cell, j) => {
        const open = panel.open(i, j, prefix);
        const two = panel.name === "encoder-decoder";
        const kind = !open ? "lm-shut"
          : two && i >= prefix && j < prefix ? "lm-cross"
          : !causal(i, j) ? "lm-extra" : "lm-self";
        cell.className = `lm-see ${kind}${i === place ? " lm-chosen" : ""}`;
        set(cell, { "data-open": String(open), "aria-label": `${tokens[i]} ${open ? "sees" : "does not see"} ${tokens[j]}` });
      }));
      panel.heads.forEach((head, j) => head.classList.toggle("lm-input", j < prefix));
      panel.names.forEach((name, i) => {
        name.classList.toggle("lm-input", i < prefix);
        set(name, { "aria-pressed": String(i === place) });
      });
    }
    const seen = (open) => {
      const names = tokens.filter((_, j) => open(place, j, prefix));
      return `${names.length} (${names.join(" ")})`;
    };
    const side = place < prefix ? "input" : "output";
    const differ = tokens.filter((_, j) => whole(place, j, prefix) !== causal(place, j)).length;
    status.textContent = `${quoted(tokens[place])} is part of the ${side}. As causal model it sees ${seen(causal)}, ` +
      `as prefix model or in an encoder-decoder ${seen(whole)}. ` +
      (differ ? `So ${plural(differ, "token")} more can shape what this one means.`
        : side === "output" ? "No difference here: but the input's tokens, which it reads, may have changed."
        : "No difference here: everything of the input lies before it.");
  }
  return follow(model, ["prefix", "place"], draw);
}

export default { render };
