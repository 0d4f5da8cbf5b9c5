const SIZE = 380; // of each plane, in units of its viewBox
const MIDDLE = SIZE / 2;

// Andrew's monotone chain: the corners of the convex hull, in order.
function hull(points) {
  const sorted = [...points].sort(([a, b], [c, d]) => a - c || b - d);
  const turn = ([ax, ay], [bx, by], [cx, cy]) => (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
  const half = (list) => {
    const chain = [];
    for (const point of list) {
      while (chain.length > 1 && turn(chain.at(-2), chain.at(-1), point) <= 0) chain.pop();
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  return sorted.length < 3 ? sorted : [...half(sorted), ...half(sorted.reverse())];
}

// A square of the plane around the origin that holds all `points`.
function plane(points, title) {
  const reach = 1.3 * Math.max(...points.flat().map(Math.abs), 1e-6);
  const unit = MIDDLE / reach;
  const place = ([x, y]) => [MIDDLE + x * unit, MIDDLE - y * unit];
  const svg = s("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, width: SIZE });
  svg.append(
    s("rect", { x: 1, y: 1, width: SIZE - 2, height: SIZE - 2, class: "lm-ground" }),
    s("line", { x1: 0, x2: SIZE, y1: MIDDLE, y2: MIDDLE, class: "lm-axisline" }),
    s("line", { x1: MIDDLE, x2: MIDDLE, y1: 0, y2: SIZE, class: "lm-axisline" }),
    s("text", { x: 10, y: 20, class: "lm-heading" }, title),
  );
  const label = (point, words, extra = 0) => {
    const [x, y] = place(point);
    const up = point[1] >= 0 ? -1 : 1;
    return s("text", { x, y: y + up * (13 + extra) + (up > 0 ? 8 : 0), "text-anchor": "middle" }, words);
  };
  return { svg, reach, unit, place, label };
}

function render({ model, el }) {
  stage(el, "lm-walk");
  const [keys, values, tokens] = ["key_points", "values", "tokens"].map((name) => model.get(name));
  const scale = model.get("scale");
  const left = plane([...keys, model.get("query")], "keys and the query");
  const right = plane(values, "values and the output");
  const [ox, oy] = left.place([0, 0]);

  const rays = keys.map((key) => {
    const [x2, y2] = left.place(key);
    return s("line", { x1: ox, y1: oy, x2, y2, class: "lm-key" });
  });
  const tips = keys.map((key) => {
    const [cx, cy] = left.place(key);
    return s("circle", { cx, cy, r: 4, class: "lm-tip" });
  });
  const arrow = s("line", { x1: ox, y1: oy, class: "lm-queryline" });
  const handle = s("g", { tabindex: 0, role: "application", "aria-roledescription": "movable point" },
    s("circle", { r: 18, class: "lm-grip" }), s("circle", { r: 8, class: "lm-query" }));
  const handleName = s("text", { "text-anchor": "middle", class: "lm-queryname" }, "query");
  left.svg.append(...rays, ...tips, ...keys.map((key, j) => left.label(key, tokens[j])), arrow, handleName, handle);
  set(left.svg, { role: "group", "aria-label": "plane of keys with a movable query" });

  const links = values.map(() => s("line", { class: "lm-link" }));
  const dots = values.map((value) => {
    const [cx, cy] = right.place(value);
    return s("circle", { cx, cy, class: "lm-value" });
  });
  const output = s("path", { d: "M0 -9 L9 0 L0 9 L-9 0 Z", class: "lm-output" });
  const outputName = s("text", { "text-anchor": "middle", class: "lm-outputname" }, "output");
  right.svg.append(
    s("polygon", { points: hull(values).map((point) => right.place(point).join()).join(" "), class: "lm-hull" }),
    ...links, ...dots, ...values.map((value, j) => right.label(value, tokens[j], 8)), output, outputName,
  );
  set(right.svg, { role: "img" });

  const bars = tokens.map((token) => ({
    bar: h("span", { class: "lm-share" }),
    reading: h("span", { class: "lm-reading" }),
    token,
  }));
  const legend = h("div", { class: "lm-legend", "aria-hidden": "true" },
    ...bars.map(({ bar, reading, token }) =>
      h("div", {}, h("span", { class: "lm-name" }, token), h("span", { class: "lm-track" }, bar), reading)));
  const status = statusLine();
  el.append(
    h("div", { class: "lm-bar lm-quiet" }, "Drag the query, or focus it and use the arrow keys (with Shift: larger steps)."),
    h("div", { class: "lm-panels" }, left.svg, right.svg, legend),
    status,
  );

  const inside = (value) => Math.max(-left.reach, Math.min(left.reach, value));
  const move = ([x, y]) => update(model, { query: [inside(x), inside(y)].map((v) => Math.round(v * 1e4) / 1e4) });
  function follow_pointer(event) {
    const box = left.svg.getBoundingClientRect();
    const at = (offset) => (offset / box.width) * SIZE - MIDDLE;
    move([at(event.clientX - box.left) / left.unit, -at(event.clientY - box.top) / left.unit]);
  }
  left.svg.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    left.svg.setPointerCapture(event.pointerId);
    handle.focus({ preventScroll: true });
    follow_pointer(event);
  });
  left.svg.addEventListener("pointermove", (event) => {
    if (left.svg.hasPointerCapture(event.pointerId)) follow_pointer(event);
  });
  handle.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!way) return;
    event.preventDefault();
    const step = (event.shiftKey ? 0.2 : 0.04) * left.reach;
    move(model.get("query").map((value, axis) => value + step * way[axis]));
  });

  function draw() {
    const query = model.get("query");
    const weights = softmax(keys.map((key) => scale * (key[0] * query[0] + key[1] * query[1])));
    const result = mixture(weights, values);
    const [x, y] = left.place(query);
    const [u, v] = right.place(result);
    set(arrow, { x2: x, y2: y });
    set(handle, { transform: `translate(${x} ${y})` });
    // The query's name stands beside its arrow, on the upper side; the output's towards the middle.
    const length = Math.hypot(x - ox, y - oy) || 1;
    const side = x < ox ? -1 : 1;
    set(handleName, {
      x: x + (36 * side * (y - oy)) / length,
      y: y + 5 - (18 * side * (x - ox)) / length,
    });
    set(output, { transform: `translate(${u} ${v})` });
    set(outputName, { x: u + (u < MIDDLE ? 14 : -14), y: v + 5, "text-anchor": u < MIDDLE ? "start" : "end" });
    weights.forEach((weight, j) => {
      set(rays[j], { "stroke-width": 1 + 9 * weight, "stroke-opacity": 0.25 + 0.75 * weight });
      const [x1, y1] = right.place(values[j]);
      set(links[j], { x1, y1, x2: u, y2: v, "stroke-opacity": weight });
      set(dots[j], { r: 4 + 12 * Math.sqrt(weight), "data-weight": weight });
      bars[j].bar.style.width = `${100 * weight}%`;
      bars[j].reading.textContent = weight.toFixed(2);
    });
    const point = ([a, b]) => `(${fixed(a)}, ${fixed(b)})`;
    const top = weights.indexOf(Math.max(...weights));
    const effective = Math.exp(entropy(weights));
    set(handle, { "aria-label": `query at ${point(query)}; arrow keys move it` });
    set(right.svg, { "aria-label": `Values, their convex hull, and the output at ${point(result)} inside it.` });
    status.textContent = `Query ${point(query)} of length ${Math.hypot(...query).toFixed(2)} reads mostly ` +
      `${quoted(tokens[top])} (${weights[top].toFixed(2)}), ${effective.toFixed(1)} of ${plural(keys.length, "key")} in effect. ` +
      `Output ${point(result)}, inside the hull. A longer query in the same direction reads more sharply.`;
  }
  return follow(model, ["query"], draw);
}

export default { render };
