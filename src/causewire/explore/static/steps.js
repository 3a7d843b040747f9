// The panel that goes through a run row by row, with the state of each process.

import { ask } from "./api.js";
import { fill, make } from "./dom.js";

export class StepsPanel {
  constructor(app, panel) {
    this.app = app;
    this.row = 0;
    this.words = make("p", { role: "status", class: "now" });
    this.slider = make("input", { type: "range", min: "0", max: "0", value: "0", "aria-label": "Row", oninput: () => this.go(Number(this.slider.value)) });
    this.table = make("table", { class: "state" });
    const button = (words, label, by) => make("button", { type: "button", "aria-label": label, onclick: () => this.go(by === null ? 0 : this.row + by) }, words);
    fill(panel, make("h2", {}, "Step by step"),
      make("div", { class: "row" }, button("Start", "To the beginning", null), button("◀", "One row back", -1), button("▶", "One row forward", 1),
        this.play = make("button", { type: "button", onclick: () => this.toggle() }, "Play"),
        make("button", { type: "button", onclick: () => this.stop() }, "Leave")),
      this.slider, this.words,
      make("p", { class: "quiet" }, "The rows are in causal order. Arrow keys on the slider step as well."),
      make("div", { class: "scroll" }, this.table));
    this.panel = panel;
  }

  async go(row) {
    const { app } = this;
    if (!app.where) return;
    this.row = Math.max(0, row);
    if (this._busy) { this._next = row; return; }
    this._busy = true;
    try {
      const step = await ask("step", { ...app.where, row: this.row });
      this.row = step.row;
      this.slider.max = String(step.rows - 1);
      this.slider.value = String(step.row);
      fill(this.words, `${step.row + 1} of ${step.rows.toLocaleString("en")}: ${step.words}`);
      app.atStep(step);
      const found = step.endpoints;
      if (found) this.words.append(make("br", {}), `Step ${found.step} of ${found.steps}: ${found.words}.`);
      const fields = (p) => make("tr", { class: "fields" }, make("td", { colspan: "6" }, ...found.endpoints[p].map((field) =>
        make("div", { class: field.new ? "new" : "" }, make("b", {}, field.name), ` ${field.value}`))));
      const list = (names) => names.join(", ") || "–";
      const shown = app.view.lanes.slice(0, 60);
      fill(this.table, make("caption", {}, "State of each process at this point"),
        make("thead", {}, make("tr", {}, ...["process", "sent", "got", "send buffer", "on its way here", "receive buffer"].map((head) => make("th", { scope: "col" }, head)))),
        make("tbody", {}, ...shown.flatMap((p) => {
          const s = step.state[p];
          const line = make("tr", { class: p === step.process ? "now" : "" }, make("th", { scope: "row" }, make("bdi", {}, app.info.processes[p])),
            make("td", {}, String(s.sent)), make("td", {}, String(s.delivered)), make("td", {}, list(s.unsent)), make("td", {}, list(s.coming)), make("td", {}, list(s.held)));
          return found ? [line, fields(p)] : [line];
        })));
    } catch (error) {
      fill(this.words, error.message);
    } finally {
      this._busy = false;
      if (this._next !== undefined) {
        const next = this._next;
        this._next = undefined;
        this.go(next);
      }
    }
  }

  toggle() {
    if (this._timer) { clearInterval(this._timer); this._timer = null; fill(this.play, "Play"); return; }
    fill(this.play, "Pause");
    this._timer = setInterval(() => {
      if (this.row >= Number(this.slider.max)) this.toggle();
      else this.go(this.row + 1);
    }, 600);
  }

  stop() {
    if (this._timer) this.toggle();
    this.app.atStep(null);
    fill(this.words);
    fill(this.table);
  }
}
