function render({ model, el }) {
  stage(el, "lm-align");
  const [weights, source, target] = ["weights", "source_tokens", "target_tokens"].map((name) => model.get(name));
  const links = model.get("links");
  let pointed = null; // the source word under the pointer or the focus

  const show = (i, j) => {
    pointed = j;
    if (model.get("row") === i) draw();
    else update(model, { row: i });
  };
  const cells = target.map((word, i) =>
    source.map((other, j) => {
      const weight = weights[i][j];
      const isLink = Boolean(links[i]?.includes(j));
      return h(
        "td",
        {
          class: `lm-weight${isLink ? " lm-link" : ""}${weight > 0.5 ? " lm-strong" : ""}`,
          style: `background: ${shade(weight)}`,
          tabindex: -1,
          "aria-label": `${word}, ${other}: weight ${fixed(weight)}${isLink ? ", a true link" : ""}`,
          onpointerenter: () => show(i, j),
          onfocus: () => show(i, j),
        },
        weight >= 0.1 ? fixed(weight).replace("0.", ".") : "",
      );
    }),
  );
  const heads = source.map((word) => h("span", {}, word));
  const rows = target.map((word, i) => h("tr", {}, h("th", { scope: "row" }, word), ...cells[i]));
  const table = h(
    "table",
    { "aria-label": "weights, one row for each target word, one column for each source word" },
    h("thead", {}, h("tr", {}, h("td", { class: "lm-quiet" }, "target \\ source"), ...heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, ...rows),
  );
  const status = statusLine();
  el.append(
    h("div", { class: "lm-bar lm-quiet" }, "Point at a row, or use Tab and the arrow keys.",
      links.length ? h("span", {}, "Frames: the true alignment.") : null),
    table,
    status,
  );
  rove(cells);

  function draw() {
    const i = model.get("row");
    const row = weights[i];
    const best = row.indexOf(Math.max(...row));
    rows.forEach((element, k) => element.classList.toggle("lm-now", k === i));
    heads.forEach((head, j) => {
      head.style.background = shade(row[j]);
      head.style.color = row[j] > 0.5 ? "var(--lm-on-fill)" : "";
    });
    const here = pointed === null || pointed === best ? "" : ` At ${quoted(source[pointed])}: ${fixed(row[pointed])}.`;
    status.textContent = `${quoted(target[i])} looks mostly at ${quoted(source[best])} (${fixed(row[best])}).${here}${truth(i, best)}`;
  }
  function truth(i, best) {
    if (!links.length) return "";
    if (!links[i].length) return " It has no true link.";
    const words = links[i].map((j) => quoted(source[j])).join(" and ");
    return ` It translates ${words}: ${links[i].includes(best) ? "aligned rightly" : "aligned wrongly"}.`;
  }
  return follow(model, ["row"], draw);
}

export default { render };
