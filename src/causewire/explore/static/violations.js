// The panel with the violations of causal order, each a click away.

import { fill, make } from "./dom.js";
import { count } from "./units.js";

export class ViolationsPanel {
  constructor(app, panel) {
    this.app = app;
    this.panel = panel;
    this.list = [];
    this.at = -1;
  }

  set(answer, report, remarks) {
    this.list = answer.list;
    const { panel, app } = this;
    const children = [make("h2", {}, "Violations of causal order")];
    if (!answer.checked) children.push(make("p", {}, "The check is still at work."));
    else if (answer.trouble) children.push(make("p", {}, `The check cannot judge this trace: ${answer.trouble}`));
    else if (!answer.total && !report.conclusive) children.push(make("p", {}, report.inferred ? "None was found, but messages were inferred from vector clocks, with which they agree by construction." : "None was found, but the trace is not complete: rows that cannot be right, or files that cannot be read, took no part."));
    else if (!answer.total) children.push(make("p", {}, "There are none: every message was delivered after all messages that happened before it."));
    else {
      const all = answer.list.length;
      children.push(make("p", {}, `${count(answer.total, "violation")} in the trace. For each message that was overtaken, the first time is listed${all ? "" : "; none of them is in this run"}.`));
    }
    if (report && (report.undelivered || report.duplicates || report.bad)) {
      const words = [];
      if (report.undelivered) words.push(`${count(report.undelivered, "copy", "copies")} never delivered`);
      if (report.duplicates) words.push(`${count(report.duplicates, "message")} delivered twice`);
      if (report.bad) words.push(`${count(report.bad, "row")} that cannot be right`);
      children.push(make("p", { class: "quiet" }, `Besides: ${words.join(", ")}.`));
    }
    children.push(...remarks.map((line) => make("p", { class: "quiet" }, line)));
    children.push(make("ol", { class: "violations" }, ...answer.list.map((violation, k) =>
      make("li", {}, make("button", { type: "button", class: "item", onclick: () => this.go(k) },
        make("strong", {}, `${violation.second.name} overtook ${violation.first.name}`),
        make("span", {}, violation.words))))));
    fill(panel, ...children);
  }

  go(k) {
    if (!this.list.length) return;
    this.at = (k + this.list.length) % this.list.length;
    [...this.panel.querySelectorAll(".item")].forEach((button, n) => button.setAttribute("aria-current", String(n === this.at)));
    this.app.showViolation(this.list[this.at]);
  }
}
