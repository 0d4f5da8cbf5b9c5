function render({ model, el }) {
  stage(el, "lm-scale");
  const [dimensions, products] = [model.get("dimensions"), model.get("products")];
  const count = products[0].length;
  const [line, left, width] = [26, 58, 250];
  const [weightsAt, height] = [left + width + 90, 34 + count * 26];

  const dimension = slider({
    label: "d_k",
    min: 0,
    max: dimensions.length - 1,
    step: 1,
    show: (choice) => `${dimensions[choice]}`,
    change: (choice) => update(model, { choice }),
  });
  const heat = slider({
    label: "temperature",
    min: -1,
    max: 1,
    step: 0.02,
    show: (power) => (10 ** power).toFixed(2),
    change: (power) => update(model, { temperature: 10 ** power }),
  });
  const scaling = checkbox("divide scores by √d_k", (scaled) => update(model, { scaled }));
  const status = statusLine();
  const svg = s("svg", { role: "img", viewBox: `0 0 ${weightsAt + width + 60} ${height}`, width: weightsAt + width + 60 });
  el.append(h("div", { class: "lm-bar" }, dimension.element, heat.element, scaling.element), svg, status);

  const zero = left + width / 2;
  const text = (x, y, words, attributes = {}) => s("text", { x, y, ...attributes }, words);
  svg.append(
    text(zero, 16, "scores", { "text-anchor": "middle", class: "lm-heading" }),
    text(weightsAt, 16, "weights = softmax(scores)", { class: "lm-heading" }),
    s("line", { x1: zero, x2: zero, y1: 26, y2: height - 4, class: "lm-zero" }),
    s("line", { x1: weightsAt, x2: weightsAt, y1: 26, y2: height - 4, class: "lm-zero" }),
    s("line", { x1: weightsAt + width / count, x2: weightsAt + width / count, y1: 26, y2: height - 4, class: "lm-even" }),
  );
  const rows = products[0].map((_, j) => {
    const y = 28 + j * line;
    const row = {
      score: s("rect", { y: y + 3, height: line - 8, class: "lm-score" }),
      scoreText: text(left + width + 12, y + 17, ""),
      weight: s("rect", { x: weightsAt, y: y + 3, height: line - 8, class: "lm-weightbar" }),
      weightText: text(0, y + 17, ""),
    };
    svg.append(text(left - 10, y + 17, `key ${j + 1}`, { "text-anchor": "end" }), ...Object.values(row));
    return row;
  });

  function draw() {
    const [choice, temperature, scaled] = ["choice", "temperature", "scaled"].map((name) => model.get(name));
    const divisor = (scaled ? Math.sqrt(dimensions[choice]) : 1) * temperature;
    const scores = products[choice].map((product) => product / divisor);
    const weights = softmax(scores);
    const nats = entropy(weights);
    dimension.move(choice);
    heat.move(Math.log10(temperature));
    scaling.move(scaled);
    // Scores grow without end; their bars share a scale that takes steps of 5, 10, 20, 40, ...
    const largest = Math.max(...scores.map(Math.abs));
    let limit = 5;
    while (limit < largest) limit *= 2;
    rows.forEach((row, j) => {
      const length = (Math.abs(scores[j]) / limit) * (width / 2);
      set(row.score, { x: scores[j] < 0 ? zero - length : zero, width: length, "data-value": scores[j] });
      row.scoreText.textContent = fixed(scores[j]);
      set(row.weight, { width: weights[j] * width, "data-value": weights[j] });
      set(row.weightText, { x: weightsAt + weights[j] * width + 6 });
      row.weightText.textContent = weights[j].toFixed(3);
    });
    const spread = `scores from ${fixed(Math.min(...scores))} to ${fixed(Math.max(...scores))}`;
    const top = Math.max(...weights);
    svg.setAttribute("aria-label", `Bars of ${count} scores and weights: ${spread}; the largest weight is ` +
      `${top.toFixed(3)} on key ${weights.indexOf(top) + 1}. The dotted line marks 1/${count}.`);
    const effective = Math.exp(nats);
    const comment = top > 0.95
      ? "The softmax is saturated: one key takes nearly everything, and almost no gradient reaches the others."
      : effective > 0.95 * count
        ? "The weights are nearly even: the output is close to the plain mean of the values."
        : "Several keys share the attention.";
    const other = Math.exp(entropy(softmax(products[choice].map((p) => p / temperature / (scaled ? 1 : Math.sqrt(dimensions[choice]))))));
    const contrast = `With${scaled ? "out" : ""} the division by √d_k it would be ${other.toFixed(2)} keys.`;
    status.textContent = `Entropy ${nats.toFixed(2)} nats = ${(nats / Math.LN2).toFixed(2)} bits, as if ` +
      `${effective.toFixed(2)} of ${count} keys were read evenly (exp(H)). ${contrast} ${comment}`;
  }
  return follow(model, ["choice", "temperature", "scaled"], draw);
}

export default { render };
