function render({ model, el }) {
  stage(el, "lm-layermap");
  const [ours, theirs, tokens] = ["student_attention", "teacher_attention", "tokens"].map((name) => model.get(name));
  // Mean divergence of the teacher's rows from the student's, as in the notebook's exercise.
  const gap = (s, t) => {
    const rows = theirs[t].map((row, i) =>
      row.reduce((sum, p, j) => sum + (p + 1e-6) * (Math.log(p + 1e-6) - Math.log(ours[s][i][j] + 1e-6)), 0));
    return rows.reduce((sum, row) => sum + row, 0) / rows.length;
  };
  const gaps = ours.map((_, s) => theirs.map((_, t) => gap(s, t)));
  const largest = Math.max(...gaps.flat(), 1e-9);

  const choose = (s, t) => {
    const chosen = [...model.get("chosen")];
    chosen[s] = chosen[s] === t ? -1 : t;
    update(model, { chosen, student: s, teacher: t });
  };
  const cells = ours.map((_, s) =>
    theirs.map((_, t) =>
      h("button", {
        type: "button", class: "lm-cell", style: `background: ${shade(0.75 * (1 - gaps[s][t] / largest))}`,
        onclick: () => choose(s, t),
        onfocus: () => update(model, { student: s, teacher: t }),
        onpointerenter: () => update(model, { student: s, teacher: t }),
      }, fixed(gaps[s][t])),
    ),
  );
  const table = h(
    "table", { "aria-label": "one row for each student layer, one column for each teacher layer" },
    h("thead", {}, h("tr", {}, h("td", { class: "lm-quiet" }, "student \\ teacher"), ...theirs.map((_, t) => h("th", { scope: "col" }, `layer ${t + 1}`)))),
    h("tbody", {}, ...cells.map((row, s) => h("tr", {}, h("th", { scope: "row" }, `layer ${s + 1}`), ...row.map((cell) => h("td", {}, cell))))),
  );
  const even = ours.map((_, s) => Math.floor(((s + 1) * theirs.length) / ours.length) - 1);
  const presets = {
    "spread evenly": even,
    "first layers": ours.map((_, s) => (s < theirs.length ? s : -1)),
    "last layers": ours.map((_, s) => (theirs.length - ours.length + s >= 0 ? theirs.length - ours.length + s : -1)),
    "the last one only": ours.map((_, s) => (s === ours.length - 1 ? theirs.length - 1 : -1)),
    nothing: ours.map(() => -1),
  };
  const buttons = Object.entries(presets).map(([name, chosen]) => button(name, () => update(model, { chosen })));
  const side = 20;
  const size = tokens.length * side;
  const map = (title) => {
    const heading = h("div", { class: "lm-heading" }, title);
    const svg = s("svg", { role: "img", viewBox: `-70 0 ${size + 70} ${size + 4}`, width: size + 70, height: size + 4 });
    tokens.forEach((token, i) => svg.append(s("text", { x: -6, y: i * side + 15, "text-anchor": "end" }, token)));
    const squares = tokens.map((_, i) => tokens.map((_, j) => {
      const square = s("rect", { x: j * side, y: i * side, width: side - 1, height: side - 1 });
      square.append(s("title", {}, ""));
      svg.append(square);
      return square;
    }));
    const show = (weights, words) => {
      heading.textContent = words;
      svg.setAttribute("aria-label", `${words}: attention weights, one row for each query, one column for each key.`);
      squares.forEach((row, i) => row.forEach((square, j) => {
        square.style.fill = shade(weights[i][j]);
        square.dataset.weight = weights[i][j];
        square.firstChild.textContent = `${tokens[i]} looks at ${tokens[j]}: ${fixed(weights[i][j])}`;
      }));
    };
    return { element: h("div", { class: "lm-map" }, heading, svg), show };
  };
  const [left, right] = [map("student"), map("teacher")];
  const status = statusLine();
  el.append(
    h("div", { class: "lm-bar lm-quiet" }, "Numbers: how far the teacher's attention is from the student's, in nats. Press a cell to match its layers; press again to undo."),
    h("div", { class: "lm-bar", role: "group", "aria-label": "layer maps" }, ...buttons),
    table,
    h("div", { class: "lm-pair" }, left.element, right.element),
    status,
  );
  rove(cells);

  function draw() {
    const [chosen, student, teacher] = ["chosen", "student", "teacher"].map((name) => model.get(name));
    cells.forEach((row, s) => row.forEach((cell, t) => {
      const on = chosen[s] === t;
      cell.setAttribute("aria-pressed", on);
      cell.setAttribute("aria-label", `student layer ${s + 1}, teacher layer ${t + 1}: ${fixed(gaps[s][t])} nats${on ? ", matched" : ""}`);
      cell.classList.toggle("lm-now", s === student && t === teacher);
    }));
    buttons.forEach((element, i) => element.setAttribute("aria-pressed", String(Object.values(presets)[i]) === String(chosen)));
    left.show(ours[student], `student, layer ${student + 1}`);
    right.show(theirs[teacher], `teacher, layer ${teacher + 1}`);
    const pairs = chosen.map((t, s) => [s, t]).filter(([, t]) => t >= 0);
    const said = pairs.map(([s, t]) => `${s + 1} ← ${t + 1}`).join(", ");
    const mean = pairs.reduce((sum, [s, t]) => sum + gaps[s][t], 0) / (pairs.length || 1);
    status.textContent = (pairs.length
      ? `Map, student ← teacher: ${said}. The attention of ${plural(pairs.length, "pair")} is ${fixed(mean)} nats apart on average.`
      : "No layers are matched: such a loss is nothing.") +
      ` Shown below the matrix: student layer ${student + 1} and teacher layer ${teacher + 1}, ${fixed(gaps[student][teacher])} nats apart.`;
  }
  return follow(model, ["chosen", "student", "teacher"], draw);
}

export default { render };
