const [LEFT, RIGHT, HIGH] = [430, 300, 330]; // sizes of the two panels, in units of their viewBoxes

function render({ model, el }) {
  stage(el, "lm-lift");
  const [points, outside] = ["points", "outside"].map((name) => model.get(name));
  const hand = (name) => (value) => update(model, { [name]: value });
  const lifting = slider({ label: "lift", min: 0, max: 1, step: 0.05, show: (v) => v.toFixed(2), change: hand("lift") });
  const turning = slider({ label: "turn", min: 0, max: 360, step: 5, show: (v) => `${v}°`, change: hand("turn") });
  const counting = slider({ label: "hidden units", min: 1, max: 8, step: 1, show: String, change: hand("units") });
  const bending = checkbox("ReLU", hand("bend"));
  const status = statusLine();
  const space = s("svg", { role: "img", viewBox: `0 0 ${LEFT} ${HIGH}`, width: LEFT });
  const flat = s("svg", { role: "img", viewBox: `0 0 ${RIGHT} ${HIGH}`, width: RIGHT });
  el.append(
    h("div", { class: "lm-bar" }, lifting.element, turning.element, counting.element, bending.element),
    h("div", { class: "lm-panels" }, space, flat),
    status,
  );

  // Inner points are discs, outer ones squares: colour is not the only difference.
  const mark = (x, y, isOutside, size) =>
    isOutside
      ? s("rect", { x: x - size, y: y - size, width: 2 * size, height: 2 * size, class: "lm-outer" })
      : s("circle", { cx: x, cy: y, r: size * 1.15, class: "lm-inner" });
  const polygon = (corners, name) => s("polygon", { points: corners.map((c) => c.join()).join(" "), class: name });
  const heading = (words) => s("text", { x: 10, y: 18, class: "lm-heading" }, words);

  // Sum of the units for a point; along a ray from the middle it grows in proportion to the radius.
  function height([x, y], units, bend) {
    let total = 0;
    for (let k = 0; k < units; k += 1) {
      const angle = (2 * Math.PI * k) / units;
      const value = x * Math.cos(angle) + y * Math.sin(angle);
      total += bend ? Math.max(0, value) : value;
    }
    return total;
  }

  function draw() {
    const [units, bend, lift, turn] = ["units", "bend", "lift", "turn"].map((name) => model.get(name));
    [[lifting, lift], [turning, turn], [counting, units], [bending, bend]].forEach(([control, value]) => control.move(value));
    const heights = points.map((point) => height(point, units, bend));
    const of = (kind) => heights.filter((_, i) => outside[i] === kind);
    const [inner, outer] = [of(false), of(true)];
    const [top, bottom] = [Math.max(...inner), Math.min(...outer)];
    const apart = bottom - top > 1e-9;
    const cut = (top + bottom) / 2;
    const largest = Math.max(...heights.map(Math.abs), 1e-9);
    const unit = Math.min(1, 1.2 / largest) * 150 * lift; // the highest point stays inside the panel

    const turned = (turn * Math.PI) / 180;
    const place = ([x, y], z) => {
      const across = x * Math.cos(turned) - y * Math.sin(turned);
      const deep = x * Math.sin(turned) + y * Math.cos(turned);
      return [LEFT / 2 + 150 * across, HIGH - 90 - 62 * deep - z * unit, deep];
    };
    const square = (z, reach) => [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([x, y]) => place([reach * x, reach * y], z).slice(0, 2));
    const shown = points.map((point, i) => ({ spot: place(point, heights[i]), foot: place(point, 0), i }));
    shown.sort((a, b) => b.spot[2] - a.spot[2]); // the farthest first
    const isSplit = apart && lift > 0;
    const pieces = (above) =>
      shown.filter(({ i }) => !isSplit || heights[i] > cut === above).flatMap(({ spot, foot, i }) => [
        s("line", { x1: foot[0], y1: foot[1], x2: spot[0], y2: spot[1], class: "lm-stem" }),
        mark(spot[0], spot[1], outside[i], 4.5),
      ]);
    space.replaceChildren(
      heading("lifted by the hidden layer"),
      polygon(square(0, 1.05), "lm-floor"),
      ...pieces(false),
      ...(isSplit ? [polygon(square(cut, 1.05), "lm-plane"), ...pieces(true)] : []),
    );

    const [mx, my, scale] = [RIGHT / 2, HIGH / 2 + 8, 135];
    const spot = ([x, y]) => [mx + scale * x, my - scale * y];
    const rays = Array.from({ length: 120 }, (_, k) => (2 * Math.PI * k) / 120);
    const edge = rays.map((angle) => {
      const ray = [Math.cos(angle), Math.sin(angle)];
      const radius = cut / Math.max(height(ray, units, bend), 1e-6);
      return spot(ray.map((v) => v * Math.min(radius, 1.4)));
    });
    flat.replaceChildren(
      heading("seen from above"),
      ...(isSplit ? [polygon(edge, "lm-edge")] : []),
      ...points.map((point, i) => mark(...spot(point), outside[i], 4)),
    );

    const span = (values) => `${fixed(lift * Math.min(...values))} to ${fixed(lift * Math.max(...values))}`;
    const say = lift === 0
      ? "Everything lies flat. Raise the lift."
      : apart
        ? "A plane separates the two kinds. Seen from above it is a closed line around the inner ring."
        : !bend
          ? "No level plane separates them: without ReLU the lifted sheet stays flat, however many units there are."
          : "No level plane separates them yet: in some directions the outer ring is as low as the inner one. Try more units.";
    status.textContent = `${plural(units, "hidden unit")} ${bend ? "with" : "without"} ReLU. Heights inside ${span(inner)}, outside ${span(outer)}. ${say}`;
    set(space, { "aria-label": `Two rings of points lifted into space. ${status.textContent}` });
    set(flat, { "aria-label": `The same points in the plane${isSplit ? ", with the boundary around the inner ring" : ", with no boundary"}.` });
  }
  return follow(model, ["units", "bend", "lift", "turn"], draw);
}

export default { render };
