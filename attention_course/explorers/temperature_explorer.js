function render({ model, el }) {
  stage(el, "lm-temperature");
  const [tokens, classes, logits, rest, labels] = ["tokens", "classes", "logits", "rest", "labels"].map((name) => model.get(name));
  const [line, left, width] = [24, 130, 360];
  const shown = Math.max(...classes.map((row) => row.length));
  const height = 26 + (shown + 1) * line;

  const heat = slider({
    label: "temperature", min: -1, max: 1.3, step: 0.02,
    show: (power) => (10 ** power).toFixed(2),
    change: (power) => update(model, { temperature: Math.min(20, 10 ** power) }),
  });
  const buttons = tokens.map((token, i) => button(token, () => update(model, { token: i })));
  const status = statusLine();
  const svg = s("svg", { role: "img", viewBox: `0 0 ${left + width + 70} ${height}`, width: left + width + 70 });
  const words = (x, y, text, attributes = {}) => s("text", { x, y, ...attributes }, text);
  svg.append(words(left, 14, "probability; outlines: at temperature 1", { class: "lm-heading" }));
  const rows = Array.from({ length: shown + 1 }, (_, place) => {
    const y = 22 + place * line;
    const row = {
      name: words(left - 10, y + 16, "", { "text-anchor": "end" }),
      plain: s("rect", { x: left, y: y + 3, height: line - 7, class: "lm-plain" }),
      bar: s("rect", { x: left, y: y + 3, height: line - 7, class: "lm-share" }),
      note: words(0, y + 16, ""),
    };
    svg.append(...Object.values(row));
    return row;
  });
  el.append(
    h("div", { class: "lm-bar", role: "group", "aria-label": "token" }, ...buttons),
    h("div", { class: "lm-bar" }, heat.element, button("temperature 1", () => update(model, { temperature: 1 }))),
    svg,
    status,
  );
  rove([buttons]);

  // Probabilities of the drawn classes, then one number for all others together.
  function shares(i, temperature) {
    const all = softmax([...logits[i], ...rest[i]].map((score) => score / temperature));
    const others = all.slice(logits[i].length).reduce((sum, share) => sum + share, 0);
    return { all, drawn: [...all.slice(0, logits[i].length), others] };
  }

  function draw() {
    const [i, temperature] = [model.get("token"), model.get("temperature")];
    heat.move(Math.log10(temperature));
    buttons.forEach((element, j) => element.setAttribute("aria-pressed", i === j));
    const { all, drawn } = shares(i, temperature);
    const cold = shares(i, 1).drawn;
    const names = [...classes[i], rest[i].length ? `${plural(rest[i].length, "other")}` : ""];
    rows.forEach((row, place) => {
      const share = drawn[place] ?? 0;
      row.name.textContent = names[place] ?? "";
      row.name.classList.toggle("lm-right", labels[i] !== null && names[place] === labels[i] && place < classes[i].length);
      set(row.plain, { width: (cold[place] ?? 0) * width });
      set(row.bar, { width: share * width, "data-value": share });
      set(row.note, { x: left + Math.max(share, cold[place] ?? 0) * width + 8 });
      row.note.textContent = names[place] ? share.toFixed(3) : "";
    });
    const nats = entropy(all);
    svg.setAttribute("aria-label", `Bars: the teacher's ${classes[i].length} likeliest classes for ${quoted(tokens[i])}, the likeliest first.`);
    const label = labels[i] === null ? "" : ` The label is ${quoted(labels[i])}.`;
    status.textContent = `${quoted(tokens[i])}: ${quoted(classes[i][0])} ${all[0].toFixed(2)}, ${quoted(classes[i][1])} ${all[1].toFixed(2)}, ` +
      `${ratio(all[0] / all[1])} times as likely.${label} Entropy ${nats.toFixed(2)} nats, as unsure as among ${Math.exp(nats).toFixed(1)} equally likely classes.`;
  }
  const ratio = (number) => (number < 100 ? number.toFixed(1) : number < 1e6 ? Math.round(number).toLocaleString("en") : "over a million");
  return follow(model, ["token", "temperature"], draw);
}

export default { render };
