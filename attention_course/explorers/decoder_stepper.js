function render({ model, el }) {
  stage(el, "lm-stepper");
  const [source, greedy, beams] = ["source_tokens", "greedy", "beams"].map((name) => model.get(name));
  const runs = { greedy, beams };
  const labels = { greedy: "greedy", beams: "beams" };

  const last = () => runs[model.get("mode")].length;
  const go = (step) => update(model, { step: Math.max(0, Math.min(last(), step)) });
  const back = button("◀ back", () => go(model.get("step") - 1));
  const on = button("step ▶", () => go(model.get("step") + 1));
  const restart = button("restart", () => go(0));
  const modes = Object.keys(runs).map((name) => {
    const choose = button(labels[name], () =>
      update(model, { mode: name, step: Math.min(model.get("step"), runs[name].length) }));
    choose.disabled = runs[name].length === 0;
    return choose;
  });
  const chip = (word, name = "") => h("span", { class: `lm-word ${name}` }, word);
  const reading = source.map((word) => chip(word));
  const written = h("div", { class: "lm-words lm-written" });
  const panel = h("div", { class: "lm-panel" });
  const status = statusLine();
  el.append(
    h("div", { class: "lm-bar" }, restart, back, on, h("span", { class: "lm-label" }, "search:"), ...modes),
    h("div", { class: "lm-label" }, "source, shaded by the cross-attention of this step"),
    h("div", { class: "lm-words lm-source" }, ...reading),
    h("div", { class: "lm-label" }, "written so far"),
    written,
    panel,
    status,
  );

  function candidates(step) {
    return h("table", { "aria-label": "candidates for this word" },
      h("tbody", {}, ...step.candidates.map(([word, share]) =>
        h("tr", {}, h("th", { scope: "row" }, word),
          h("td", {}, h("div", { class: "lm-track" }, h("span", { class: "lm-share", style: `width: ${100 * share}%` }))),
          h("td", { class: "lm-number" }, fixed(share, 3))))));
  }
  function hypotheses(step) {
    const titles = ["sentence", "log-probability", "per word", ""];
    return h("table", { "aria-label": "the beams after this step, best first" },
      h("thead", {}, h("tr", {}, ...titles.map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, ...step.map((beam) =>
        h("tr", { class: beam.finished ? "lm-finished" : "" },
          h("td", { class: "lm-text" }, beam.sentence),
          h("td", { class: "lm-number" }, fixed(beam.sum, 3)),
          h("td", { class: "lm-number" }, fixed(beam.score, 3)),
          h("td", { class: "lm-text" }, beam.finished ? "finished, set aside" : "")))));
  }
  const bestFinished = (upTo) =>
    beams.slice(0, upTo).flat().filter((beam) => beam.finished).sort((a, b) => b.score - a.score)[0];

  function draw() {
    const [mode, number] = [model.get("mode"), model.get("step")];
    const step = number > 0 ? runs[mode][number - 1] : null;
    const now = step === null ? null : mode === "greedy" ? step : step[0];
    const weights = now?.weights ?? source.map(() => 0);
    const words = now === null ? [] : mode === "greedy" ? greedy.slice(0, number).map((one) => one.word) : now.sentence.split(" ");
    reading.forEach((element, j) => {
      element.style.background = shade(weights[j]);
      element.classList.toggle("lm-strong", weights[j] > 0.5);
      set(element, { "data-weight": weights[j], title: `weight ${fixed(weights[j])}` });
    });
    written.replaceChildren(chip("[start]"), ...words.map((word, i) => chip(word, i === words.length - 1 ? "lm-new" : "")));
    panel.replaceChildren(step === null ? "" : mode === "greedy" ? candidates(step) : hypotheses(step));
    back.disabled = restart.disabled = number === 0;
    on.disabled = number === last();
    modes.forEach((choose, n) => set(choose, { "aria-pressed": String(Object.keys(runs)[n] === mode) }));
    status.textContent = now === null
      ? "The encoder has read the source, once. Nothing is written yet: the decoder will read [start]."
      : mode === "greedy" ? tellGreedy(step, number) : tellBeams(step, number);
  }
  function mostly(weights) {
    const best = weights.indexOf(Math.max(...weights));
    return `looks mostly at ${quoted(source[best])} (${fixed(weights[best])})`;
  }
  function tellGreedy(step, number) {
    const [[word, share], second] = step.candidates;
    const rival = second ? ` Next best: ${quoted(second[0])} (${fixed(second[1], 3)}).` : "";
    const over = number === greedy.length ? " The sentence is over." : "";
    return `Step ${number} of ${greedy.length}: the model ${mostly(step.weights)} and writes ${quoted(word)} (${fixed(share, 3)}).${rival}${over}`;
  }
  function tellBeams(step, number) {
    const best = bestFinished(number);
    const found = best ? ` Best finished so far: ${quoted(best.sentence)}, ${fixed(best.score, 3)} per word.` : "";
    const living = step.filter((beam) => !beam.finished).length;
    const over = number === beams.length ? " The search is over." : "";
    return `Step ${number} of ${beams.length}: ${plural(living, "live sentence")}, best first; the best ${mostly(step[0].weights)}.${found}${over}`;
  }
  return follow(model, ["step", "mode"], draw);
}

export default { render };
