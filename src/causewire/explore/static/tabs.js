// The panels beside the diagram, one of which is shown.

import { fill, make } from "./dom.js";

export class Tabs {
  constructor(list, place) {
    this.list = list;
    this.place = place;
    this.tabs = new Map();
    list.addEventListener("keydown", (event) => {
      const names = [...this.tabs.keys()];
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = names[(names.indexOf(this.shown) + step + names.length) % names.length];
      this.show(next);
      this.tabs.get(next).button.focus();
    });
  }

  add(name, title) {
    const button = make("button", {
      role: "tab", type: "button", id: `tab-${name}`, "aria-controls": `panel-${name}`,
      "aria-selected": "false", tabindex: "-1", onclick: () => this.show(name),
    }, title);
    const panel = make("section", {
      role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}`, tabindex: "0", hidden: true,
    });
    this.list.append(button);
    this.place.append(panel);
    this.tabs.set(name, { button, panel });
    if (!this.shown) this.show(name);
    return panel;
  }

  title(name, text) { fill(this.tabs.get(name).button, text); }

  show(name) {
    this.shown = name;
    for (const [key, { button, panel }] of this.tabs) {
      button.setAttribute("aria-selected", String(key === name));
      button.tabIndex = key === name ? 0 : -1;
      panel.hidden = key !== name;
    }
    this.changed?.(name);
  }
}
