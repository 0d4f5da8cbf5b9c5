function render({ model, el }) {
  stage(el, "lm-bpe");
  const most = model.get("most");
  const bytes = (text) => [...new TextEncoder().encode(text)];
  const spell = (token) => {
    const text = new TextDecoder().decode(Uint8Array.from(token.bytes));
    return text.includes("\ufffd")
      ? token.bytes.map((byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ")
      : text.replaceAll(" ", "␣").replaceAll("\n", "↵");
  };
  const key = (a, b) => `${a.number},${b.number}`;

  function countPairs(tokens) {
    const pairs = new Map();
    tokens.slice(1).forEach((right, i) => {
      const left = tokens[i];
      const entry = pairs.get(key(left, right)) ?? { left, right, often: 0 };
      entry.often += 1;
      pairs.set(key(left, right), entry);
    });
    return [...pairs.values()].sort((a, b) =>
      b.often - a.often || a.left.number - b.left.number || a.right.number - b.right.number);
  }
  function merge(tokens, { left, right }, made) {
    const result = [];
    for (let i = 0; i < tokens.length; i += 1) {
      const fits = i + 1 < tokens.length && tokens[i].number === left.number && tokens[i + 1].number === right.number;
      result.push(fits ? made : tokens[i]);
      if (fits) i += 1;
    }
    return result;
  }
  // All states: tokens, their pairs by frequency, and the merge that led here.
  function history(text) {
    let tokens = bytes(text).map((byte) => ({ number: byte, bytes: [byte] }));
    const states = [{ tokens, pairs: countPairs(tokens), made: null }];
    while (states.length <= most) {
      const best = states.at(-1).pairs[0];
      if (!best || best.often < 2) break;
      const made = { number: 255 + states.length, bytes: [...best.left.bytes, ...best.right.bytes] };
      tokens = merge(tokens, best, made);
      states.push({ tokens, pairs: countPairs(tokens), made, best });
    }
    return states;
  }

  const box = h("input", { type: "text", class: "lm-text", maxlength: 120, "aria-label": "text" });
  box.addEventListener("input", () => update(model, { source: box.value, step: 0 }));
  const steps = slider({
    label: "merges", min: 0, max: most, step: 1,
    show: (step) => `${step}`,
    change: (step) => update(model, { step }),
  });
  const back = button("back", () => update(model, { step: Math.max(0, model.get("step") - 1) }));
  const next = button("next merge", () => update(model, { step: model.get("step") + 1 }));
  const row = h("p", { class: "lm-tokens", "aria-label": "tokens" });
  const list = h("tbody");
  const status = statusLine();
  el.append(
    h("div", { class: "lm-bar" }, h("label", {}, "text ", box), steps.element, back, next),
    row,
    h("table", { "aria-label": "most frequent pairs" },
      h("thead", {}, h("tr", {}, ...["next pairs", "numbers", "how often"].map((name) => h("th", { scope: "col" }, name)))),
      list),
    status,
  );

  function draw() {
    const source = model.get("source");
    const states = history(source);
    const last = states.length - 1;
    const step = Math.min(model.get("step"), last);
    const { tokens, pairs, made, best } = states[step];
    if (box.value !== source) box.value = source;
    set(steps.element.querySelector("input"), { max: Math.max(last, 1) });
    steps.move(step);
    set(back, { disabled: step === 0 });
    set(next, { disabled: step === last });
    row.replaceChildren(...tokens.map((token) =>
      h("span", { class: `lm-token${made && token.number === made.number ? " lm-made" : ""}`, title: `token ${token.number}` }, spell(token))));
    list.replaceChildren(...pairs.slice(0, 5).map((pair, place) =>
      h("tr", { class: place === 0 && pair.often > 1 ? "lm-best" : "" },
        h("td", {}, `${spell(pair.left)} + ${spell(pair.right)}`),
        h("td", {}, `${pair.left.number}, ${pair.right.number}`),
        h("td", {}, `${pair.often}`))));
    const length = states[0].tokens.length;
    const did = made
      ? `Merge ${step}: “${spell(best.left)}” + “${spell(best.right)}” occurred ${best.often} times and became token ${made.number}. `
      : "No merge yet: every byte is a token. ";
    const end = step === last ? "No pair occurs twice: this text has nothing more to learn." : "";
    status.textContent = `${did}${length} bytes are now ${plural(tokens.length, "token")}. ${end}`;
  }
  return follow(model, ["source", "step"], draw);
}

export default { render };
