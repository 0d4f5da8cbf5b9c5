const [LEFT, WIDE, HIGH, GAP] = [64, 620, 130, 46]; // the two rows of bars
const DECADES = [-9, 9]; // range of the sizes' logarithms that is ever drawn

function render({ model, el }) {
  stage(el, "lm-flow");
  const [sizes, likeness] = [model.get("sizes"), model.get("likeness")];
  const hand = (name) => (value) => update(model, { [name]: value });
  const linking = checkbox("residual links", hand("residual"));
  const widening = checkbox("MLP", hand("mlp"));
  const norms = { none: "no norm", pre: "pre-LN", post: "post-LN" };
  const choices = Object.entries(norms).map(([norm, words]) => ({ norm, element: button(words, () => update(model, { norm })) }));
  const deepening = slider({ label: "layers", min: 1, max: 24, step: 1, show: String, change: hand("depth") });
  const status = statusLine();
  const height = 2 * (HIGH + GAP);
  const svg = s("svg", { role: "img", viewBox: `0 0 ${LEFT + WIDE + 10} ${height}`, width: LEFT + WIDE + 10 });
  el.append(
    h("div", { class: "lm-bar" }, linking.element, widening.element,
      h("span", { class: "lm-choice", role: "group", "aria-label": "norm" }, ...choices.map(({ element }) => element)),
      deepening.element),
    svg, status,
  );
  const text = (x, y, words, attributes = {}) => s("text", { x, y, ...attributes }, words);

  // One row of bars from `base` upwards; `share` turns a value into 0 to 1, ticks are [share, words].
  function row(top, title, values, share, ticks, name) {
    const base = top + HIGH;
    const step = WIDE / values.length;
    return [
      text(LEFT, top - 8, title, { class: "lm-heading" }),
      ...ticks.flatMap(([at, words]) => [
        s("line", { x1: LEFT, x2: LEFT + WIDE, y1: base - at * HIGH, y2: base - at * HIGH, class: "lm-tick" }),
        text(LEFT - 8, base - at * HIGH + 4, words, { "text-anchor": "end" }),
      ]),
      ...values.map((value, layer) => {
        const tall = Math.max(1, share(value) * HIGH);
        return s("rect", {
          x: LEFT + layer * step + 1, width: Math.max(1, step - 3), y: base - tall, height: tall,
          class: name, "data-value": value, "data-layer": layer,
        }, s("title", {}, `${layer ? `layer ${layer}` : "input"}: ${value.toPrecision(3)}`));
      }),
    ];
  }

  const power = (exponent) => (Math.abs(exponent) <= 3 ? `${Number((10 ** exponent).toPrecision(1))}` : `1e${exponent < 0 ? "−" : ""}${Math.abs(exponent)}`);

  function draw() {
    const [residual, mlp, norm, depth] = ["residual", "mlp", "norm", "depth"].map((name) => model.get(name));
    linking.move(residual);
    widening.move(mlp);
    deepening.move(depth);
    choices.forEach((choice) => choice.element.setAttribute("aria-pressed", choice.norm === norm));
    const key = [residual && "residual", mlp && "mlp", norm].filter(Boolean).join(" ");
    const large = sizes[key].slice(0, depth + 1);
    const alike = likeness[key].slice(0, depth + 1);

    // Sizes share one logarithmic scale, at least from 0.1 to 100, wider if they leave it.
    const logs = large.map((size) => Math.log10(size));
    const low = Math.max(DECADES[0], Math.min(-1, Math.floor(Math.min(...logs))));
    const high = Math.min(DECADES[1], Math.max(2, Math.ceil(Math.max(...logs))));
    const at = (exponent) => (exponent - low) / (high - low);
    const marks = [...new Set([low, 0, high])].map((exponent) => [at(exponent), power(exponent)]);
    const below = HIGH + GAP + 26;
    const step = WIDE / (depth + 1);
    svg.replaceChildren(
      ...row(26, "size of the token vectors (logarithmic)", large, (size) => at(Math.log10(size)), marks, "lm-size"),
      ...row(below, "how alike different tokens are (mean cosine)", alike, (value) => Math.max(0, value), [[0, "0"], [1, "1"]], "lm-alike"),
      ...Array.from({ length: depth + 1 }, (_, layer) => layer)
        .filter((layer) => layer % (depth > 12 ? 4 : 2) === 0)
        .map((layer) => text(LEFT + (layer + 0.5) * step - 1, below + HIGH + 16, layer ? `${layer}` : "input", { "text-anchor": "middle" })),
    );

    const [size, like] = [large.at(-1), alike.at(-1)];
    const shown = size >= 1e4 || size < 0.01 ? size.toExponential(1) : size >= 10 ? size.toFixed(0) : size.toPrecision(2);
    const sense = like > 0.99
      ? "All tokens are the same: the stack has forgotten which is which."
      : like > 0.6
        ? "Tokens have become much alike."
        : "Tokens are still told apart.";
    const growth = size > 100 ? "The vectors grow without limit. " : size < 0.01 ? "The vectors fade away. " : "";
    status.textContent = `After ${plural(depth, "layer")}: size ${shown}, tokens alike ${fixed(like)}. ${growth}${sense}`;
    svg.setAttribute("aria-label", `Bars for the input and ${plural(depth, "layer")} of attention, ${residual ? "with" : "without"} ` +
      `residual links, ${mlp ? "with" : "without"} MLP, ${norms[norm]}. ${status.textContent}`);
  }
  return follow(model, ["residual", "mlp", "norm", "depth"], draw);
}

export default { render };
