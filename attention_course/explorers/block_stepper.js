function render({ model, el }) {
  stage(el, "lm-blocks");
  const [scores, values] = [model.get("scores"), model.get("values")];
  const keys = values.length;
  const width = values[0].length;
  const blocks = () => Math.ceil(keys / model.get("block"));
  let way = 0; // +1 after a step on, −1 after a step back

  // Maximum, sum and output of one query after `step` blocks, merged block by block; `factor` is
  // what the last block made of the old sums.
  function running(row, step) {
    const block = model.get("block");
    let state = { largest: -Infinity, total: 0, output: values[0].map(() => 0), factor: 0 };
    for (let start = 0; start < Math.min(keys, block * step); start += block) {
      const part = row.slice(start, start + block);
      const largest = Math.max(state.largest, ...part);
      const factor = Math.exp(state.largest - largest);
      const powers = part.map((score) => Math.exp(score - largest));
      const total = powers.reduce((sum, power) => sum + power, factor * state.total);
      const output = state.output.map((old, k) =>
        powers.reduce((sum, power, j) => sum + power * values[start + j][k], factor * old));
      state = { largest, total, output, factor };
    }
    return state;
  }

  function go(step) {
    way = Math.sign(step - model.get("step"));
    update(model, { step: Math.max(0, Math.min(blocks(), step)) });
  }
  const back = button("back", () => go(model.get("step") - 1));
  const on = button("step", () => go(model.get("step") + 1));
  const restart = button("restart", () => go(0));
  const size = slider({
    label: "keys in a block", min: 1, max: keys, step: 1, show: String,
    change: (block) => { way = 0; update(model, { block, step: 0 }); },
  });

  const cell = (name) => h("td", { class: name });
  const grid = scores.map(() => values.map(() => cell("lm-score")));
  const numbers = scores.map(() => ({
    factor: cell("lm-number"), largest: cell("lm-number"), total: cell("lm-number"),
    output: values[0].map(() => cell("lm-number")),
  }));
  const gap = () => h("td", { class: "lm-gap" });
  const heading = (span, text) => h("th", { colspan: span, scope: "colgroup" }, text);
  const column = (text) => h("th", { scope: "col" }, text);
  const table = h("table", { "aria-label": "scores, and the running numbers of each query" },
    h("thead", {},
      h("tr", {}, h("td"), heading(keys, "scores (only this block is held)"), gap(),
        heading(3, "running"), gap(), heading(width, "output / sum")),
      h("tr", {}, h("td", { class: "lm-quiet" }, "query \\ key"), ...values.map((_, j) => column(`${j + 1}`)), gap(),
        column("rescaled by"), column("maximum"), column("sum"), gap(), ...values[0].map((_, k) => column(`${k + 1}`)))),
    h("tbody", {}, ...scores.map((_, i) =>
      h("tr", {}, h("th", { scope: "row" }, `${i + 1}`), ...grid[i], gap(),
        numbers[i].factor, numbers[i].largest, numbers[i].total, gap(), ...numbers[i].output))));
  const status = statusLine();
  el.append(h("div", { class: "lm-bar" }, back, on, restart, size.element), table, status);

  function draw() {
    const [block, step] = [model.get("block"), model.get("step")];
    const [start, stop] = [Math.max(0, block * (step - 1)), Math.min(keys, block * step)];
    size.move(block);
    back.disabled = restart.disabled = step === 0;
    on.disabled = step === blocks();
    const risen = [];
    scores.forEach((row, i) => {
      const now = running(row, step);
      const factor = start ? now.factor : null;
      if (factor !== null && factor < 1) risen.push(`${i + 1} (× ${fixed(factor)})`);
      row.forEach((score, j) => {
        const held = j >= start && j < stop;
        grid[i][j].textContent = held ? fixed(score, 1) : j < start ? "·" : "";
        grid[i][j].classList.toggle("lm-held", held);
        grid[i][j].style.background = held ? shade(0.6 * Math.exp(score - now.largest)) : "";
      });
      numbers[i].factor.textContent = factor === null ? "" : fixed(factor);
      numbers[i].factor.classList.toggle("lm-fell", factor !== null && factor < 1);
      numbers[i].largest.textContent = step ? fixed(now.largest) : "−∞";
      numbers[i].total.textContent = fixed(step ? now.total : 0);
      numbers[i].output.forEach((entry, k) => (entry.textContent = step ? fixed(now.output[k] / now.total) : "0/0"));
    });
    status.textContent = (way < 0 ? "One step back. " : "") + words(step, start, stop, risen);
    way = 0;
  }

  function words(step, start, stop, risen) {
    const queries = scores.length;
    const all = `${queries} × ${keys} = ${queries * keys} scores`;
    if (!step) return `Nothing seen yet: maximum −∞, sum 0. Of ${all}, none is held.`;
    const held = queries * (stop - start);
    const news = `Block ${step} of ${blocks()}: ${start + 1 === stop ? `key ${stop}` : `keys ${start + 1} to ${stop}`}. `;
    const memory = `Held now: ${plural(held, "score")} of ${queries * keys}, and ${2 + width} running numbers for each query. `;
    const change = step === 1 ? ""
      : risen.length ? `The maximum rose for ${risen.length === 1 ? "query" : "queries"} ${risen.join(", ")}: old sum and output shrink by that factor. `
      : "No maximum rose, so nothing had to be rescaled. ";
    if (step < blocks()) return news + change + memory;
    const apart = scores.map((row) => {
      const { total, output } = running(row, step);
      const exact = mixture(softmax(row), values);
      return Math.max(...exact.map((entry, k) => Math.abs(entry - output[k] / total)));
    });
    return news + change + memory +
      `All keys seen: outputs differ from those of whole rows by at most ${Math.max(...apart).toExponential(0)}.`;
  }
  return follow(model, ["block", "step"], draw);
}

export default { render };
