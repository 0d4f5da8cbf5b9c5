function render({ model, el }) {
  stage(el, "lm-sampling");
  const [tokens, logits] = [model.get("tokens"), model.get("logits")];
  const count = tokens.length;
  const order = tokens.map((_, i) => i).sort((a, b) => logits[b] - logits[a] || a - b);
  const [line, left, width] = [24, 92, 380];
  const height = 26 + count * line;

  const heat = slider({
    label: "temperature", min: -1, max: 0.48, step: 0.02,
    show: (power) => (10 ** power).toFixed(2),
    change: (power) => update(model, { temperature: Math.min(3, 10 ** power) }),
  });
  const most = slider({
    label: "top-k", min: 1, max: count, step: 1,
    show: (k) => (k === count ? `${k} (all)` : `${k}`),
    change: (k) => update(model, { k }),
  });
  const mass = slider({
    label: "top-p", min: 0.05, max: 1, step: 0.01,
    show: (p) => (p >= 1 ? "1 (all)" : p.toFixed(2)),
    change: (p) => update(model, { p }),
  });
  const status = statusLine();
  const svg = s("svg", { role: "img", viewBox: `0 0 ${left + width + 190} ${height}`, width: left + width + 190 });
  const words = (x, y, text, attributes = {}) => s("text", { x, y, ...attributes }, text);
  svg.append(words(left, 14, "probability of being drawn", { class: "lm-heading" }));
  const rows = order.map((i, place) => {
    const y = 22 + place * line;
    const row = {
      name: words(left - 10, y + 16, tokens[i].replaceAll(" ", "␣").replaceAll("\n", "↵"), { "text-anchor": "end" }),
      plain: s("rect", { x: left, y: y + 3, height: line - 7, class: "lm-plain" }),
      bar: s("rect", { x: left, y: y + 3, height: line - 7, class: "lm-kept" }),
      note: words(0, y + 16, ""),
    };
    svg.append(...Object.values(row));
    return row;
  });
  el.append(h("div", { class: "lm-bar" }, heat.element, most.element, mass.element), svg, status);

  // Places in the order of probability: what temperature, then top-k, then top-p leave.
  function filtered(temperature, k, p) {
    const scores = order.map((i) => logits[i] / temperature);
    const warm = softmax(scores);
    const first = softmax(scores, scores.map((_, place) => place < k));
    let before = 0;
    const reason = first.map((probability, place) => {
      if (place >= k) return "out: top-k";
      const out = before >= p && p < 1;
      before += probability;
      return out ? "out: top-p" : "";
    });
    return { warm, reason, drawn: softmax(scores, reason.map((text) => text === "")) };
  }

  function draw() {
    const [temperature, k, p] = ["temperature", "k", "p"].map((name) => model.get(name));
    heat.move(Math.log10(temperature));
    most.move(k);
    mass.move(p);
    const { warm, reason, drawn } = filtered(temperature, k, p);
    rows.forEach((row, place) => {
      set(row.plain, { width: warm[place] * width });
      set(row.bar, { width: drawn[place] * width, "data-value": drawn[place] });
      row.name.classList.toggle("lm-out", reason[place] !== "");
      row.note.textContent = reason[place] || drawn[place].toFixed(3);
      row.note.classList.toggle("lm-out", reason[place] !== "");
      set(row.note, { x: left + Math.max(drawn[place], warm[place]) * width + 8 });
    });
    const kept = reason.filter((text) => text === "").length;
    const nats = entropy(drawn);
    svg.setAttribute("aria-label", `Bars of ${plural(count, "token")}, the most probable first; ` +
      `${kept} may be drawn. Outlines show the probabilities before top-k and top-p.`);
    const lost = 1 - warm.reduce((sum, w, place) => sum + (reason[place] === "" ? w : 0), 0);
    status.textContent = `${kept} of ${plural(count, "token")} may be drawn. Entropy ${nats.toFixed(2)} nats, as unsure as ` +
      `among ${Math.exp(nats).toFixed(1)} equally likely tokens. ` +
      (lost > 0.0005
        ? `The filters take ${(100 * lost).toFixed(1)} % of the probability away and share it out among what is kept.`
        : "The filters take nothing away.");
  }
  return follow(model, ["temperature", "k", "p"], draw);
}

export default { render };
