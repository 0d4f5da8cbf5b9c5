function render({ model, el }) {
  stage(el, "lm-spans");
  const [tokens, starts, ends, places] = ["tokens", "start_scores", "end_scores", "context"].map((name) => model.get(name));
  const score = (i, j) => starts[i] + ends[j];
  const all = places.flatMap((i) => places.filter((j) => j >= i).map((j) => score(i, j)));
  const [low, high] = [Math.min(...all), Math.max(...all)];
  let pointed = null; // the span under the pointer or the focus

  const limit = slider({
    label: "longest answer", min: 1, max: places.length, step: 1,
    show: (longest) => plural(longest, "token"),
    change: (longest) => update(model, { longest }),
  });
  const gate = slider({
    label: "threshold", min: -10, max: 10, step: 0.5,
    show: (threshold) => fixed(threshold, 1),
    change: (threshold) => update(model, { threshold }),
  });
  const status = statusLine();
  const point = (i, j) => {
    pointed = [i, j];
    draw();
  };
  const cells = places.map((i) =>
    places.map((j) =>
      h("td", { class: "lm-span", tabindex: -1, onpointerenter: () => point(i, j), onfocus: () => point(i, j) })));
  const column = (j) => h("th", { scope: "col" }, h("span", {}, tokens[j]));
  el.append(
    h("div", { class: "lm-bar" }, limit.element, gate.element),
    h("table", { "aria-label": "score of each span, one row for each start, one column for each end" },
      h("thead", {}, h("tr", {}, h("td", { class: "lm-quiet" }, "start \\ end"), ...places.map(column))),
      h("tbody", {}, ...places.map((i, row) => h("tr", {}, h("th", { scope: "row" }, tokens[i]), ...cells[row])))),
    status,
  );
  rove(cells);

  const words = (i, j) => quoted(tokens.slice(i, j + 1).join(" "));
  const reason = (i, j, longest) =>
    j < i ? "ends before it begins" : j - i >= longest ? `is longer than ${plural(longest, "token")}` : "";

  function draw() {
    const [longest, threshold] = [model.get("longest"), model.get("threshold")];
    limit.move(longest);
    gate.move(threshold);
    let best = null;
    for (const i of places) for (const j of places) {
      if (!reason(i, j, longest) && (!best || score(i, j) > score(...best))) best = [i, j];
    }
    const nothing = score(0, 0);
    const wins = score(...best) - nothing > threshold;
    places.forEach((i, row) => places.forEach((j, at) => {
      const cell = cells[row][at];
      const why = reason(i, j, longest);
      const share = high > low ? (score(i, j) - low) / (high - low) : 1;
      const isBest = i === best[0] && j === best[1];
      cell.classList.toggle("lm-shut", why !== "");
      cell.classList.toggle("lm-best", isBest);
      cell.classList.toggle("lm-beaten", isBest && !wins);
      cell.classList.toggle("lm-strong", share > 0.55 && !why);
      cell.style.background = why ? "" : shade(share);
      cell.textContent = why ? "" : fixed(score(i, j), 1);
      const name = j < i ? `start ${tokens[i]}, end ${tokens[j]}` : words(i, j);
      cell.setAttribute("aria-label", why ? `${name} ${why}` : `${name}: score ${fixed(score(i, j))}`);
    }));
    const verdict = wins
      ? `Answer: ${words(...best)}, score ${fixed(score(...best))}; no answer scores ${fixed(nothing)}.`
      : `No answer: ${words(...best)} scores ${fixed(score(...best))}, [CLS] ${fixed(nothing)}; the lead is not above ${fixed(threshold, 1)}.`;
    status.textContent = verdict + (pointed ? ` ${here(...pointed, longest)}` : "");
  }
  function here(i, j, longest) {
    const why = reason(i, j, longest);
    if (j < i) return `From ${quoted(tokens[i])} to ${quoted(tokens[j])}: it ${why}.`;
    return why ? `${words(i, j)} ${why}.` : `${words(i, j)}: ${fixed(starts[i])} + ${fixed(ends[j])} = ${fixed(score(i, j))}.`;
  }
  return follow(model, ["longest", "threshold"], draw);
}

export default { render };
