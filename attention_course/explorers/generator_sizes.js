function render({ model, el }) {
  stage(el, "lm-sizes");
  const [runs, measures] = [model.get("runs"), model.get("measures")];
  const shares = [...new Set(runs.map((run) => run.share))].sort((a, b) => a - b);
  const [width, height, left, top, bottom] = [520, 250, 62, 14, 40];
  const x = (share) => left + 60 + ((width - left - 120) * shares.indexOf(share)) / Math.max(1, shares.length - 1);
  const svg = s("svg", { role: "img", viewBox: `0 0 ${width} ${height}`, width });
  const choices = Object.keys(measures).map((name) =>
    button(name.replace("_", " "), () => update(model, { measure: name })));
  const status = statusLine();
  el.append(
    h("div", { class: "lm-bar", role: "group", "aria-label": "measure" }, ...choices), svg, status);

  function draw() {
    const measure = model.get("measure");
    choices.forEach((one, i) =>
      set(one, { "aria-pressed": String(Object.keys(measures)[i] === measure) }));
    const values = runs.map((run) => run[measure]);
    const room = 0.15 * (Math.max(...values) - Math.min(...values)) || 1;
    const [low, high] = [Math.min(...values) - room, Math.max(...values) + room];
    const y = (value) => top + ((height - top - bottom) * (high - value)) / (high - low);
    const of = (share) => runs.filter((run) => run.share === share).map((run) => run[measure]);
    const means = shares.map((share) => of(share).reduce((sum, value) => sum + value, 0) / of(share).length);
    const inPaper = shares.filter((share) => share >= 0.25 && share <= 0.5).map(x);
    const band = inPaper.length
      ? s("rect", { class: "lm-band", x: Math.min(...inPaper) - 28, width: Math.max(...inPaper) - Math.min(...inPaper) + 56,
        y: top, height: height - top - bottom })
      : null;
    const ticks = [0, 1, 2, 3].map((i) => low + room / 2 + ((high - low - room) * i) / 3);
    svg.replaceChildren(
      ...(band ? [band, s("text", { class: "lm-tick", x: Math.min(...inPaper) - 22, y: top + 13 }, "best in the paper (GLUE)")] : []),
      ...ticks.flatMap((value) => [
        s("line", { class: "lm-grid", x1: left, x2: width - 8, y1: y(value), y2: y(value) }),
        s("text", { class: "lm-tick", x: left - 6, y: y(value) + 4, "text-anchor": "end" }, fixed(value, measure === "generator_loss" ? 2 : 1)),
      ]),
      s("polyline", { class: "lm-means", points: shares.map((share, i) => `${x(share)},${y(means[i])}`).join(" ") }),
      ...runs.map((run) => s("circle", { class: "lm-run", cx: x(run.share), cy: y(run[measure]), r: 5 })),
      ...shares.map((share) => s("text", { class: "lm-tick", x: x(share), y: height - 22, "text-anchor": "middle" }, String(share))),
      s("text", { class: "lm-tick", x: (left + width) / 2, y: height - 5, "text-anchor": "middle" },
        "generator's width as a share of the discriminator's"),
    );
    const down = measure === "generator_loss";
    const best = means.indexOf(down ? Math.min(...means) : Math.max(...means));
    const others = shares.filter((_, i) => i !== best).flatMap(of);
    const own = of(shares[best]);
    const clear = own.length > 2 &&
      (down ? Math.max(...own) < Math.min(...others) : Math.min(...own) > Math.max(...others));
    const said = `${measures[measure]}: ` + shares.map((share, i) => `${share} gives ${fixed(means[i], 2)}`).join(", ") +
      `. ${down ? "Lowest" : "Best"} on average: ${shares[best]}, ` +
      (clear ? "in every seed." : "but seeds are few or overlap: not settled.");
    status.textContent = said;
    set(svg, { "aria-label": `Dots for each seed and a line through the means. ${said}` });
  }
  return follow(model, ["measure"], draw);
}

export default { render };
