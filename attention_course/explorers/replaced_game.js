function render({ model, el }) {
  stage(el, "lm-game");
  const sentences = model.get("sentences");
  const go = (step) => {
    const sentence = (model.get("sentence") + step + sentences.length) % sentences.length;
    update(model, { sentence, marked: [], shown: false });
  };
  const reveal = button("show the discriminator's scores", () =>
    update(model, { shown: !model.get("shown") }));
  const count = h("span", { class: "lm-quiet" });
  const words = h("div", { class: "lm-words", role: "group", "aria-label": "words of the sentence" });
  const status = statusLine();
  el.append(
    h("div", { class: "lm-bar" }, button("previous", () => go(-1)), button("next sentence", () => go(1)), count, reveal),
    words, status,
  );

  const toggle = (place) => {
    const marked = model.get("marked");
    update(model, {
      marked: marked.includes(place) ? marked.filter((i) => i !== place) : [...marked, place],
    });
  };
  let built = -1;
  let buttons = [];

  function build(number) {
    const { corrupted } = sentences[number];
    buttons = corrupted.map((word, place) =>
      h("button", { type: "button", class: "lm-word", onclick: () => toggle(place) }, word));
    words.replaceChildren(...buttons.map((one) =>
      h("div", { class: "lm-cell" }, one, h("span", { class: "lm-note" }), h("span", { class: "lm-was" }))));
    rove([buttons]);
    built = number;
  }

  function draw() {
    const [number, marked, shown] = [model.get("sentence"), model.get("marked"), model.get("shown")];
    if (number !== built) build(number);
    const { original, corrupted, scores } = sentences[number];
    const replaced = corrupted.map((word, place) => word !== original[place]);
    buttons.forEach((one, place) => {
      const chosen = marked.includes(place);
      set(one, {
        "aria-pressed": String(chosen),
        style: shown ? `background: ${shade(0.75 * scores[place])}` : null,
        "data-replaced": shown ? String(replaced[place]) : null,
      });
      const [note, was] = [...one.parentElement.querySelectorAll("span")];
      note.textContent = shown ? fixed(scores[place]) : "";
      was.textContent = shown && replaced[place] ? `was ${original[place]}` : "";
    });
    count.textContent = `sentence ${number + 1} of ${sentences.length}`;
    reveal.textContent = shown ? "hide the scores" : "show the discriminator's scores";
    if (!shown) {
      status.textContent = `You have chosen ${plural(marked.length, "word")}. ` +
        "Choose the words that you believe replaced; arrow keys walk, Enter chooses.";
      return;
    }
    const hits = (found) => replaced.filter((is, place) => is && found(place)).length;
    const alarms = (found) => replaced.filter((is, place) => !is && found(place)).length;
    const total = replaced.filter(Boolean).length;
    const tell = (who, found) => `${who} found ${hits(found)} of ${total}, with ${plural(alarms(found), "false alarm")}. `;
    status.textContent = tell("You", (place) => marked.includes(place)) +
      tell("The discriminator (above 0.5)", (place) => scores[place] > 0.5);
  }
  return follow(model, ["sentence", "marked", "shown"], draw);
}

export default { render };
