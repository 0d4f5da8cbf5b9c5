function render({ model, el }) {
  stage(el, "lm-ablation");
  const [original, drawn, objectives] = ["original", "drawn", "objectives"].map((name) => model.get(name));
  const names = ["samples", "says_words", "everywhere"];
  const switches = names.map((name, i) => checkbox(
    ["reads the generator's samples (else [MASK])", "says words (else original or replaced)",
      "is asked about every word (else the chosen ones)"][i],
    (on) => update(model, { [name]: on }),
  ));
  const presets = objectives.map((one) =>
    button(one.name, () => update(model, Object.fromEntries(names.map((name) => [name, one[name]])))));
  const line = (label) => {
    const cells = original.map(() => h("td"));
    return { cells, row: h("tr", {}, h("th", { scope: "row" }, label), ...cells) };
  };
  const [words, reads, says] = ["original", "the model reads", "it should say"].map(line);
  words.cells.forEach((cell, place) => (cell.textContent = original[place]));
  const status = statusLine();
  el.append(
    h("div", { class: "lm-bar", role: "group", "aria-label": "objectives" }, ...presets),
    h("div", { class: "lm-bar" }, ...switches.map((one) => one.element)),
    h("table", { "aria-label": "what the model reads and should say" },
      h("tbody", {}, words.row, reads.row, says.row)),
    status,
  );

  function draw() {
    const [samples, saysWords, everywhere] = names.map((name) => model.get(name));
    switches.forEach((one, i) => one.move([samples, saysWords, everywhere][i]));
    let asked = 0;
    original.forEach((word, place) => {
      const sample = drawn[place];
      const chosen = sample !== undefined;
      const read = !chosen ? word : samples ? sample : "[MASK]";
      reads.cells[place].textContent = read;
      reads.cells[place].className = chosen ? "lm-chosen" : "";
      const loss = everywhere || chosen;
      asked += loss ? 1 : 0;
      says.cells[place].textContent = !loss ? "–" : saysWords ? word : read === word ? "original" : "replaced";
      says.cells[place].className = loss ? "lm-asked" : "lm-quiet";
    });
    const now = objectives.find((one) =>
      one.samples === samples && one.says_words === saysWords && one.everywhere === everywhere);
    presets.forEach((one, i) => set(one, { "aria-pressed": String(objectives[i] === now) }));
    const where = `${asked} of ${plural(original.length, "word")} carry a loss. `;
    status.textContent = where + (now
      ? `This is ${now.name}: ${fixed(now.glue, 1)} on GLUE in the paper.`
      : saysWords ? "A masked language model that also has to repeat what it sees: not among the paper's objectives."
        : "Every [MASK] would be called replaced, and nothing learned: not among the paper's objectives.");
  }
  return follow(model, names, draw);
}

export default { render };
