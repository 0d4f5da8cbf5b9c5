const FARTHEST = 40;
const PLACES = [0, 25, 50, 75, 100];
const WIDTHS = [4, 8, 16];

function render({ model, el }) {
  stage(el, "lm-products");
  const [left, top, width, height] = [56, 16, 620, 260];
  const names = ["scheme", "mixed", "width", "power", "place"];
  const [matrix, query, key] = ["matrix", "query", "key"].map((name) => model.get(name));
  const distances = Array.from({ length: 2 * FARTHEST + 1 }, (_, i) => i - FARTHEST);

  const schemes = { waves: button("waves, added", () => update(model, { scheme: "waves" })), rotary: button("rotary", () => update(model, { scheme: "rotary" })) };
  const mixing = checkbox("random projections", (mixed) => update(model, { mixed }));
  const sliders = {
    place: slider({ label: "query's position", min: 0, max: 100, step: 1, show: (value) => `${value}`, change: (place) => update(model, { place }) }),
    width: slider({ label: "width", min: 0, max: 2, step: 1, show: (i) => `${WIDTHS[i]}`, change: (i) => update(model, { width: WIDTHS[i] }) }),
    power: slider({ label: "base", min: 1, max: 5, step: 0.25, show: (power) => `${Math.round(10 ** power)}`, change: (power) => update(model, { power }) }),
  };
  const status = statusLine();

  const total = left + width + 16;
  const svg = s("svg", { viewBox: `0 0 ${total} ${top + height + 46}`, width: total, role: "img" });
  const xOf = (distance) => left + ((distance + FARTHEST) / (2 * FARTHEST)) * width;
  const label = (x, y, words, anchor = "middle") => s("text", { x, y, "text-anchor": anchor }, words);
  const others = PLACES.map(() => s("path", { class: "lm-other" }));
  const curve = s("path", { class: "lm-curve" });
  const [high, low] = [label(left - 8, top + 12, "", "end"), label(left - 8, top + height, "", "end")];
  svg.append(
    s("rect", { x: left, y: top, width, height, class: "lm-border" }),
    s("line", { x1: left, x2: left + width, y1: top + height / 2, y2: top + height / 2, class: "lm-zero" }),
    s("line", { x1: xOf(0), x2: xOf(0), y1: top, y2: top + height, class: "lm-zero" }),
    label(left - 8, top + height / 2 + 4, "0", "end"), high, low,
    ...[-40, -20, 0, 20, 40].map((distance) => label(xOf(distance), top + height + 18, fixed(distance, 0))),
    label(left + width / 2, top + height + 38, "distance: key's position − query's position"),
    ...others, curve,
  );
  el.append(
    h("div", { class: "lm-bar" }, ...Object.values(schemes), mixing.element),
    h("div", { class: "lm-bar" }, ...Object.values(sliders).map((one) => one.element)),
    svg,
    h("div", { class: "lm-quiet" }, "Orange: the chosen query. Grey: queries at 0, 25, 50, 75 and 100."),
    status,
  );

  function scores(place) {
    const [scheme, mixed, d, power] = names.map((name) => model.get(name));
    const rates = Array.from({ length: d / 2 }, (_, i) => (10 ** power) ** ((-2 * i) / d));
    if (scheme === "rotary") {
      const scale = mixed ? 1 / Math.sqrt(d) : 2 / d;
      return distances.map((distance) => scale * rates.reduce((sum, rate, i) => {
        const [a, b] = mixed ? [query[2 * i], query[2 * i + 1]] : [1, 0];
        const [c, e] = mixed ? [key[2 * i], key[2 * i + 1]] : [1, 0];
        // Both are turned, as in attention; that only the difference counts is for the eye to see.
        const [here, there] = [place * rate, (place + distance) * rate];
        const turn = (x, y, angle) => [x * Math.cos(angle) - y * Math.sin(angle), x * Math.sin(angle) + y * Math.cos(angle)];
        const [[q0, q1], [k0, k1]] = [turn(a, b, here), turn(c, e, there)];
        return sum + q0 * k0 + q1 * k1;
      }, 0));
    }
    const waves = (position) => rates.flatMap((rate) => [Math.sin(position * rate), Math.cos(position * rate)]);
    const here = waves(place);
    const against = here.map((value, j) => (mixed ? here.reduce((sum, x, i) => sum + x * matrix[i][j], 0) : value));
    return distances.map((distance) => (2 / d) * waves(place + distance).reduce((sum, x, j) => sum + x * against[j], 0));
  }

  function draw() {
    const [scheme, mixed, d, power, place] = names.map((name) => model.get(name));
    Object.entries(schemes).forEach(([name, element]) => element.setAttribute("aria-pressed", `${name === scheme}`));
    mixing.move(mixed);
    sliders.place.move(place);
    sliders.width.move(WIDTHS.indexOf(d));
    sliders.power.move(power);
    const all = PLACES.map(scores);
    const own = scores(place);
    let limit = 1;
    while (limit < Math.max(...[...all, own].flat().map(Math.abs)) - 1e-9) limit *= 2;
    const path = (values) => `M${values.map((value, i) => `${xOf(distances[i]).toFixed(1)} ${(top + (1 - value / limit) * (height / 2)).toFixed(1)}`).join("L")}`;
    others.forEach((other, i) => set(other, { d: path(all[i]) }));
    set(curve, { d: path(own) });
    [high.textContent, low.textContent] = [`${limit}`, `−${limit}`];
    const apart = Math.max(...distances.map((_, i) => Math.max(...all.map((c) => c[i])) - Math.min(...all.map((c) => c[i]))));
    svg.dataset.apart = apart;
    const at = (distance) => fixed(own[distance + FARTHEST]);
    const verdict = apart < 1e-3
      ? "All curves are one: only the distance counts."
      : `At the same distance, scores of the grey queries differ by up to ${apart.toFixed(2)}: the place counts as well.`;
    const said = `Query at position ${place}: score ${at(-10)} at distance −10, ${at(0)} at 0, ${at(10)} at +10. ${verdict}`;
    set(svg, { "aria-label": `Curves of scores against distance. ${said}` });
    status.textContent = said;
  }
  return follow(model, names, draw);
}

export default { render };
