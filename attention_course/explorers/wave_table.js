// A colour from orange (−1) through white to blue (1): the same in light and dark pages.
function tint(value) {
  const [red, green, blue] = value < 0 ? [179, 80, 11] : [20, 103, 179];
  const mix = (part) => Math.round(255 + (part - 255) * Math.abs(value));
  return [mix(red), mix(green), mix(blue), 255];
}

function render({ model, el }) {
  stage(el, "lm-waves");
  const rows = model.get("rows");
  const [left, top, width, height, gap, curve] = [48, 34, 420, 352, 46, 190];
  const curveAt = left + width + gap;
  const names = ["d_model", "power", "position", "column"];

  const choose = (changes) => {
    const [d, column] = ["d_model", "column"].map((name) => changes[name] ?? model.get(name));
    const wanted = { ...changes, column: Math.min(column, d - 1) };
    if (Object.entries(wanted).some(([name, value]) => value !== model.get(name))) update(model, wanted);
    else draw(); // a slider may stand past what there is
  };
  const whole = (name, label, min, max, step) =>
    slider({ label, min, max, step, show: (value) => `${value}`, change: (value) => choose({ [name]: value }) });
  const sliders = {
    d_model: whole("d_model", "d_model", 4, 64, 2),
    power: slider({
      label: "base", min: 1, max: 5, step: 0.25,
      show: (power) => `${Math.round(10 ** power)}`,
      change: (power) => choose({ power }),
    }),
    position: whole("position", "position", 0, rows - 1, 1),
    column: whole("column", "column", 0, 63, 1),
  };
  const status = statusLine();

  const total = curveAt + curve + 14;
  const svg = s("svg", { viewBox: `0 0 ${total} ${top + height + 30}`, width: total, role: "img" });
  const picture = s("image", { x: left, y: top, width, height, preserveAspectRatio: "none", class: "lm-pixels" });
  const rowMark = s("rect", { x: left, width, height: height / rows, class: "lm-mark" });
  const columnMark = s("rect", { y: top, height, class: "lm-mark" });
  const wave = s("path", { class: "lm-wave" });
  const dot = s("circle", { r: 5, class: "lm-dot" });
  const curveTitle = s("text", { x: curveAt + curve / 2, y: 20, "text-anchor": "middle", class: "lm-heading" });
  const label = (x, y, words, anchor = "middle") => s("text", { x, y, "text-anchor": anchor }, words);
  const xOf = (value) => curveAt + ((value + 1) / 2) * curve;
  const yOf = (position) => top + ((position + 0.5) / rows) * height;
  svg.append(
    s("text", { x: left + width / 2, y: 20, "text-anchor": "middle", class: "lm-heading" }, "table: position × column"),
    picture,
    s("rect", { x: left, y: top, width, height, class: "lm-border" }),
    ...[0, 16, 32, 48, rows - 1].map((p) => label(left - 8, yOf(p) + 4, `${p}`, "end")),
    label(left, top + height + 20, "fast waves", "start"),
    label(left + width, top + height + 20, "slow waves", "end"),
    s("rect", { x: curveAt, y: top, width: curve, height, class: "lm-border" }),
    s("line", { x1: xOf(0), x2: xOf(0), y1: top, y2: top + height, class: "lm-zero" }),
    ...[-1, 0, 1].map((value) => label(xOf(value), top + height + 20, value < 0 ? "−1" : `${value}`)),
    rowMark, columnMark, wave, curveTitle, dot,
  );
  const canvas = document.createElement("canvas");
  el.append(
    h("div", { class: "lm-bar" }, ...Object.values(sliders).map((one) => one.element)),
    h("div", { class: "lm-quiet" }, "Point at the table to choose a position and a column."),
    svg, status,
  );
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * total - left;
    const y = ((event.clientY - box.top) / box.width) * total - top;
    if (x < 0 || x >= width || y < 0 || y >= height) return;
    choose({ column: Math.floor((x / width) * model.get("d_model")), position: Math.floor((y / height) * rows) });
  });

  let painted = "";
  function paint(d, angle) {
    [canvas.width, canvas.height] = [d, rows];
    const context = canvas.getContext("2d");
    const image = context.createImageData(d, rows);
    for (let p = 0; p < rows; p += 1)
      for (let c = 0; c < d; c += 1)
        image.data.set(tint(c % 2 ? Math.cos(angle(p, c)) : Math.sin(angle(p, c))), 4 * (p * d + c));
    context.putImageData(image, 0, 0);
    picture.setAttribute("href", canvas.toDataURL());
  }

  function draw() {
    const [d, power, position, column] = names.map((name) => model.get(name));
    names.forEach((name) => sliders[name].move(model.get(name)));
    const base = 10 ** power;
    const angle = (p, c) => p / base ** ((2 * Math.floor(c / 2)) / d);
    const value = (p) => (column % 2 ? Math.cos(angle(p, column)) : Math.sin(angle(p, column)));
    if (painted !== `${d} ${base}`) paint(d, angle);
    painted = `${d} ${base}`;
    set(rowMark, { y: top + (position / rows) * height });
    set(columnMark, { x: left + (column / d) * width, width: width / d });
    const points = Array.from({ length: 4 * (rows - 1) + 1 }, (_, i) => `${xOf(value(i / 4)).toFixed(1)} ${yOf(i / 4).toFixed(1)}`);
    set(wave, { d: `M${points.join("L")}` });
    set(dot, { cx: xOf(value(position)), cy: yOf(position), "data-value": value(position) });
    const kind = column % 2 ? "cosine" : "sine";
    const pair = Math.floor(column / 2);
    curveTitle.textContent = `column ${column}: ${kind}`;
    const lengthOf = (i) => 2 * Math.PI * base ** ((2 * i) / d);
    const slow = Array.from({ length: d / 2 }, (_, i) => lengthOf(i)).filter((length) => length > rows).length;
    const said = `Column ${column} is the ${kind} of pair ${pair}, with wavelength ${lengthOf(pair).toFixed(1)} positions; ` +
      `at position ${position} it is ${fixed(value(position))}.`;
    set(svg, { "aria-label": `Heat map of ${rows} positions and ${d} columns, and a curve. ${said}` });
    status.textContent = `${said} ${slow} of ${plural(d / 2, "pair")} ${slow === 1 ? "does" : "do"} not finish one wave within ` +
      `${rows} positions: the slower, the less neighbours differ in them.`;
  }
  return follow(model, names, draw);
}

export default { render };
