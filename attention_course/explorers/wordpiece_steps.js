function render({ model, el }) {
  stage(el, "lm-wordpiece");
  const known = new Set(model.get("pieces"));

  // Every try: { piece, start, end, known }, in the order in which WordPiece looks pieces up.
  function allTries(letters) {
    const tries = [];
    let start = 0;
    while (start < letters.length) {
      let end = letters.length;
      for (; end > start; end -= 1) {
        const piece = (start ? "##" : "") + letters.slice(start, end).join("");
        tries.push({ piece, start, end, known: known.has(piece) });
        if (known.has(piece)) break;
      }
      if (end === start) return { tries, failed: true };
      start = end;
    }
    return { tries, failed: false };
  }

  const box = h("input", { type: "text", class: "lm-text", maxlength: 20, "aria-label": "word", spellcheck: "false" });
  box.addEventListener("input", () => update(model, { word: box.value.replace(/\s/g, ""), step: 0 }));
  const back = button("back", () => update(model, { step: Math.max(0, now().step - 1) }));
  const next = button("next try", () => update(model, { step: now().step + 1 }));
  const piece = button("next piece", () => {
    const { tries, step } = now();
    const found = tries.findIndex((entry, i) => i >= step && entry.known);
    update(model, { step: found < 0 ? tries.length : found + 1 });
  });
  const row = h("div", { class: "lm-letters", "aria-hidden": "true" });
  const tried = h("ul", { class: "lm-list", "aria-label": "pieces tried" });
  const result = h("ul", { class: "lm-list", "aria-label": "pieces found" });
  const status = statusLine();
  el.append(
    h("div", { class: "lm-bar" }, h("label", {}, "word ", box), back, next, piece),
    row,
    h("div", { class: "lm-quiet" }, "tried so far (solid: in the vocabulary)"), tried,
    h("div", { class: "lm-quiet" }, "pieces"), result,
    status,
  );

  function now() {
    const letters = [...model.get("word")];
    const { tries, failed } = allTries(letters);
    return { letters, tries, failed, step: Math.min(model.get("step"), tries.length) };
  }
  function draw() {
    const { letters, tries, failed, step } = now();
    const word = letters.join("");
    if (box.value !== word) box.value = word;
    const shown = tries.slice(0, step);
    const last = shown.at(-1);
    const found = shown.filter((entry) => entry.known);
    const done = found.at(-1)?.end ?? 0;
    const over = step === tries.length && letters.length > 0;
    row.replaceChildren(...letters.map((letter, i) => h("span", {
      class: [i < done ? "lm-done" : "", last && i >= last.start && i < last.end ? "lm-tried" : ""].join(" "),
    }, letter)));
    tried.replaceChildren(...shown.map((entry) => h("li", { class: entry.known ? "lm-known" : "" }, entry.piece)));
    const pieces = over && failed ? ["[UNK]"] : found.map((entry) => entry.piece);
    result.replaceChildren(...pieces.map((text) => h("li", { class: "lm-known" }, text)));
    set(back, { disabled: step === 0 });
    set(next, { disabled: step === tries.length });
    set(piece, { disabled: step === tries.length });
    status.textContent = sentence({ letters, last, over, failed, found, step, tries });
  }
  function sentence({ letters, last, over, failed, found, step, tries }) {
    if (!letters.length) return "Type a word.";
    const count = `Try ${step} of ${tries.length}: `;
    if (!last) return `${plural(tries.length, "try").replace("trys", "tries")} to come. The first one is the whole word.`;
    const answer = last.known ? "is in the vocabulary." : "is not in the vocabulary.";
    if (!over) return `${count}${quoted(last.piece)} ${answer}`;
    if (failed) return `${count}${quoted(last.piece)} ${answer} Nothing is left to try: the whole word is [UNK].`;
    return `${count}${quoted(last.piece)} ${answer} Done: ${plural(found.length, "piece")}.`;
  }
  return follow(model, ["word", "step"], draw);
}

export default { render };
