function render({ model, el }) {
  stage(el, "lm-memory");
  const [places, most] = [24, 3];
  const [left, top, across, down] = [64, 20, 28, 50];
  const names = ["memory", "layers", "place", "segment"];
  const whole = (name, label, min, max) =>
    slider({ label, min, max, step: 1, show: (value) => `${value}`, change: (value) => update(model, { [name]: value }) });
  const sliders = {
    memory: whole("memory", "memory", 0, 12),
    layers: whole("layers", "layers", 1, most),
    place: whole("place", "place that looks", 0, places - 1),
  };
  const status = statusLine();
  const [width, height] = [left + places * across + 10, top + most * down + 56];
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "img" });
  const drawing = s("g");
  svg.append(drawing);
  el.append(
    h("div", { class: "lm-bar" }, ...Object.values(sliders).map((one) => one.element)),
    svg,
    h("p", { class: "lm-key" },
      h("span", { class: "lm-dot lm-trained" }), " used and trained, ",
      h("span", { class: "lm-dot lm-old" }), " used from memory, not trained, ",
      h("span", { class: "lm-dot" }), " not used"),
    status,
  );

  function draw() {
    const [memory, layers, place, segment] = names.map((name) => model.get(name));
    names.slice(0, 3).forEach((name) => sliders[name].move(model.get(name)));
    const start = (p) => p - (p % segment);
    const first = (p) => Math.max(0, start(p) - memory);
    const rows = [new Set([place])];
    for (let layer = 0; layer < layers; layer += 1) {
      const below = new Set();
      rows[layer].forEach((p) => { for (let q = first(p); q <= p; q += 1) below.add(q); });
      rows.push(below);
    }
    const x = (p) => left + (p + 0.5) * across;
    const y = (row) => top + row * down;
    const parts = [];
    for (let p = 0; p < places; p += segment)
      parts.push(s("rect", { x: left + p * across + 2, y: 6, width: Math.min(segment, places - p) * across - 4, height: layers * down + 28, class: "lm-segment" }));
    rows.slice(0, -1).forEach((row, layer) => row.forEach((p) => {
      for (let q = first(p); q <= p; q += 1) {
        const old = start(q) !== start(p) || start(p) !== start(place);
        parts.push(s("line", { x1: x(p), y1: y(layer), x2: x(q), y2: y(layer + 1), class: old ? "lm-old" : "lm-trained" }));
      }
    }));
    rows.forEach((row, layer) => {
      parts.push(s("text", { x: left - 8, y: y(layer) + 4, "text-anchor": "end" }, layer === layers ? "words" : `layer ${layers - layer}`));
      for (let p = 0; p < places; p += 1) {
        const kind = !row.has(p) ? "" : start(p) === start(place) ? "lm-trained" : "lm-old";
        const circle = s("circle", { cx: x(p), cy: y(layer), r: 7, class: `lm-node ${kind}`, "data-row": layer, "data-place": p });
        circle.addEventListener("click", () => update(model, { place: p }));
        parts.push(circle);
      }
    });
    for (let p = 0; p < places; p += 1)
      parts.push(s("text", { x: x(p), y: y(layers) + 28, "text-anchor": "middle" }, `${p}`));
    drawing.replaceChildren(...parts);
    set(svg, { viewBox: `0 0 ${width} ${top + layers * down + 40}`, height: top + layers * down + 40 });
    const oldest = Math.min(...rows[layers]);
    const old = [...rows[layers]].filter((p) => p < start(place)).length;
    const said = `Place ${place} is place ${place - start(place)} of its segment, counted from 0: one layer reaches ${plural(place - first(place), "place")} back, ` +
      `${plural(layers, "layer")} ${plural(place - oldest, "place")}, down to the word at ${oldest}.`;
    set(svg, { "aria-label": `Rows of places, the words below. ${said}` });
    status.textContent = `${said} ${old ? `Of earlier segments, ${plural(old, "word")} ${old === 1 ? "is" : "are"} used, without a gradient from here.`
      : memory ? "Nothing of earlier segments is used." : "Without a memory, nothing before the segment is seen."}`;
  }
  return follow(model, names, draw);
}

export default { render };
