// What bertviz expects from the page, and what it lacks: the keyboard.
// bertviz asks require.js for jQuery and d3. d3 is in the page already; of jQuery it uses the few
// methods below, so this small stand-in is all it needs.

function $(what) {
  const elements = what.startsWith("<")
    ? [document.createElement(what.match(/\w+/)[0])]
    : [...document.querySelectorAll(what)];
  const chain = (action) => (...given) => {
    elements.forEach((element) => action(element, ...given));
    return wrapped;
  };
  const wrapped = {
    elements,
    append: chain((element, other) => element.append(...other.elements)),
    attr: chain((element, name, value) => element.setAttribute(name, value)),
    change: chain((element) => element.dispatchEvent(new Event("change"))),
    empty: chain((element) => element.replaceChildren()),
    on: chain((element, type, listener) => element.addEventListener(type, listener)),
    text: chain((element, words) => { element.textContent = words; }),
    val: chain((element, value) => { element.value = value; }),
  };
  return wrapped;
}
const require = { config() {} };
const requirejs = (names, use) => use($, d3);

// Whatever listens to the mouse gets a Tab stop: focus does what hovering does, Enter and space do
// what a click does. d3 keeps the listeners of an element in its property __on.
const hears = (element, type) => (element.__on ?? []).some((listener) => listener.type === type);

function nameOf(element) {
  const [, layer, head] = element.parentNode.querySelector(".attn_background")?.id.match(/_(\d+)_(\d+)$/) ?? [];
  if (layer) return `layer ${layer}, head ${head}: show in detail`;
  if (element.parentNode.querySelector(".plus-sign")) return "show queries, keys and their products";
  if (element.parentNode.querySelector(".minus-sign")) return "hide queries, keys and their products";
  return `head ${[...element.parentNode.children].indexOf(element)} on or off`;
}

function pressable(element) {
  element.setAttribute("tabindex", "0");
  element.setAttribute("role", "button");
  element.setAttribute("aria-label", nameOf(element));
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    element.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  });
}

function hoverable(group) {
  const token = group.querySelector("text");
  if (token) {
    token.setAttribute("tabindex", "0");
    token.setAttribute("role", "button");
    token.setAttribute("aria-label", `attention of ${token.textContent}`);
  }
  group.addEventListener("focusin", () => group.dispatchEvent(new MouseEvent("mouseover")));
  group.addEventListener("focusout", (event) => {
    if (group.contains(event.relatedTarget)) return;
    for (let place = group; place.tagName !== "svg"; place = place.parentNode) {
      place.dispatchEvent(new MouseEvent("mouseleave"));
    }
  });
}

function reach() {
  document.querySelectorAll("#vis svg :is(g, rect):not([data-reached])").forEach((element) => {
    element.setAttribute("data-reached", "");
    if (hears(element, "click")) pressable(element);
    else if (element.tagName === "g" && hears(element, "mouseover")) hoverable(element);
  });
}

// Shrinks a view that needs `width` pixels to a narrower page.
function fit(width) {
  const resize = () => {
    document.getElementById("vis").style.zoom = Math.min(1, (innerWidth - 24) / width);
  };
  resize();
  addEventListener("resize", resize);
}

addEventListener("DOMContentLoaded", () => {
  reach();
  new MutationObserver(reach).observe(document.body, { childList: true, subtree: true });
});
