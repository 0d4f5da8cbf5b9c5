function render({ model, el }) {
  stage(el, "lm-blanks");
  const tokens = model.get("tokens");
  const answers = model.get("answers");
  let watched = null; // the blank whose attention is shown

  function toggle(place) {
    const blanks = model.get("blanks");
    watched = place;
    if (blanks.includes(place)) {
      if (blanks.length === 1) return draw(); // one blank always stays
      watched = blanks.find((other) => other !== place);
      return update(model, { blanks: blanks.filter((other) => other !== place) });
    }
    const kept = blanks.slice(1 - model.get("most")); // the oldest one is filled again
    return update(model, { blanks: [...kept, place] });
  }

  const words = tokens.map((word, place) => button(word, () => toggle(place)));
  words.forEach((element, place) => {
    element.classList.add("lm-word");
    element.disabled = /^\[.*\]$/.test(tokens[place]); // [CLS] and its like are never blanked
  });
  const tables = h("div", { class: "lm-tables" });
  const status = statusLine();
  el.append(
    h("div", { class: "lm-bar lm-quiet" }, "Press a word to blank it, at most two at a time. Colours: where the model looks from the blank."),
    h("div", { class: "lm-sentence", role: "group", "aria-label": "words of the sentence" }, ...words),
    tables,
    status,
  );

  function draw() {
    const blanks = model.get("blanks");
    const found = answers[[...blanks].sort((a, b) => a - b).join(",")];
    const place = blanks.includes(watched) ? watched : blanks.at(-1);
    const { weights } = found[place];
    words.forEach((element, i) => {
      const blank = blanks.includes(i);
      element.textContent = blank ? "____" : tokens[i];
      element.style.background = shade(weights[i]);
      element.classList.toggle("lm-strong", weights[i] > 0.5);
      set(element, { "aria-pressed": String(blank), "aria-label": `${tokens[i]}${blank ? ", blank" : ""}, weight ${fixed(weights[i])}` });
    });
    tables.replaceChildren(...[...blanks].sort((a, b) => a - b).map((i) => table(i, found[i].words)));
    const [best, chance] = found[place].words[0];
    const strongest = weights.indexOf(Math.max(...weights));
    const right = best === tokens[place] ? "which stood there" : `but ${quoted(tokens[place])} stood there`;
    const where = blanks.includes(strongest) ? "a blank" : quoted(tokens[strongest]);
    status.textContent = `Place ${place}: first guess ${quoted(best)} (${fixed(chance)}), ${right}. It looks mostly at ${where} (${fixed(weights[strongest])}).`;
  }
  function table(place, guesses) {
    return h("table", {},
      h("caption", {}, `guesses at place ${place}`),
      h("tbody", {}, ...guesses.map(([word, chance]) =>
        h("tr", { class: word === tokens[place] ? "lm-right" : "" },
          h("td", {}, word),
          h("td", {}, fixed(chance)),
          h("td", { class: "lm-bar-cell", "aria-hidden": "true" }, h("span", { style: `width: ${Math.round(80 * chance)}px` }))))));
  }
  return follow(model, ["blanks"], draw);
}

export default { render };
