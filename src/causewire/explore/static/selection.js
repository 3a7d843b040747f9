// The panel about what is selected: what became of it, what held it back, what it depends on.

import { fill, make } from "./dom.js";
import { count } from "./units.js";

export class SelectionPanel {
  constructor(app, panel) {
    this.app = app;
    this.panel = panel;
    this.render(null, null, null);
  }

  render(selection, relation, mark) {
    const { app, panel } = this;
    if (!selection) {
      fill(panel,
        make("h2", {}, "Selection"),
        make("p", {}, "Click a message or an event: its causal past and future light up, and this panel explains what held it back."),
        make("p", { class: "quiet" }, "Then click another one with Shift: are the two ordered, and by which chain of messages?"));
      return;
    }
    const others = selection.copies.length > 1
      ? make("p", { class: "quiet" }, "Sent to: ",
        ...selection.copies.map(([copy, name]) => make("button", {
          type: "button", class: "link", "aria-pressed": String(copy === selection.copy),
          onclick: () => app.choose(app.diagrams[0], { row: -1, copy }, false),
        }, name)))
      : null;
    fill(panel,
      make("h2", {}, make("bdi", {}, selection.title)),
      relation ? make("p", { class: `relation ${relation.relation}`, role: "status" }, relation.words) : null,
      selection.copy >= 0 ? null : make("p", {}, `${selection.words}.`),
      ...selection.sentences.map((text) => make("p", { class: /held (at|there)/.test(text) ? "held" : "" }, text)),
      others,
      make("table", { class: "cone" },
        make("caption", {}, selection.copy >= 0 ? `All other events, seen from “${selection.words}”` : "All other events"),
        make("tbody", {},
          row("past", "happened before it", selection.before),
          row("none", "concurrent with it", selection.concurrent),
          row("future", "depend on it", selection.after))),
      make("p", {},
        make("button", { type: "button", onclick: () => app.mark(), "aria-pressed": String(Boolean(mark)) }, mark ? "Compare with another …" : "Compare …"), " ",
        make("button", { type: "button", onclick: () => app.closer() }, "Zoom to it"), " ",
        make("button", { type: "button", onclick: () => app.clear() }, "Clear")),
      mark ? make("p", { class: "quiet" }, "Now select the event to compare with.") : null);
  }
}

function row(name, words, number) {
  return make("tr", {}, make("th", { scope: "row" }, make("i", { class: `swatch ${name}` }), words), make("td", {}, count(number, "event")));
}
