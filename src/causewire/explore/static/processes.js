// The panel in which processes are shown, hidden, and put in another order.

import { fill, make } from "./dom.js";
import { count } from "./units.js";

const MOST = 400;

export class ProcessesPanel {
  constructor(app, panel) {
    this.app = app;
    this.order = [];
    this.hidden = new Set();
    this.filter = make("input", { type: "search", id: "process-filter", placeholder: "name or /expression/", autocomplete: "off", oninput: () => this.apply() });
    this.grouping = make("input", { type: "text", id: "process-groups", placeholder: "/^(\\D+)/ or nothing", autocomplete: "off", spellcheck: "false", onchange: () => { this.apply(); this.render(); } });
    this.list = make("ol", { class: "processes" });
    this.note = make("p", { class: "quiet", role: "status" });
    fill(panel, make("h2", {}, "Processes"),
      make("p", {}, make("label", { for: "process-filter" }, "Show only "), this.filter),
      make("p", {}, make("label", { for: "process-groups" }, "Group by "), this.grouping),
      make("div", { class: "row" },
        make("button", { type: "button", onclick: () => { this.hidden.clear(); this.filter.value = ""; this.apply(); this.render(); } }, "Show all"),
        make("button", { type: "button", onclick: () => this.sort((p) => -this.info.events[p]) }, "Busiest first"),
        make("button", { type: "button", onclick: () => this.sort((p) => p) }, "By name"),
        make("button", { type: "button", onclick: () => this.involved() }, "Only those of the selection")),
      this.note, this.list);
  }

  set(info) {
    const same = this.info && this.info.processes.length <= info.processes.length
      && this.info.processes.every((name, k) => name === info.processes[k]);
    this.info = info;
    if (!same) {
      this.order = info.processes.map((_, k) => k);
      this.hidden.clear();
    } else {
      for (let k = this.order.length; k < info.processes.length; k += 1) this.order.push(k);
    }
    this.apply();
    this.render();
  }

  sort(key) {
    this.order.sort((a, b) => key(a) - key(b));
    this.apply();
    this.render();
  }

  // Processes that the chain, the comparison or the message itself runs through.
  involved() {
    const wanted = this.app.involved();
    if (!wanted.size) { fill(this.note, "Select a message or a violation first."); return; }
    this.hidden = new Set(this.order.filter((p) => !wanted.has(p)));
    this.filter.value = "";
    this.apply();
    this.render();
  }

  _matches() {
    const text = this.filter.value.trim();
    if (!text) return () => true;
    const expression = /^\/(.*)\/$/.exec(text);
    if (expression) {
      try {
        const found = new RegExp(expression[1]);
        return (name) => found.test(name);
      } catch { return () => true; }
    }
    return (name) => name.toLowerCase().includes(text.toLowerCase());
  }

  // The group of each process: what the first parentheses of the expression match, or all of it.
  _groups() {
    const text = this.grouping.value.trim().replace(/^\/(.*)\/$/, "$1");
    if (!text) return new Map();
    try {
      const expression = new RegExp(text);
      return new Map(this.order.map((p) => {
        const found = expression.exec(this.info.processes[p]);
        return [p, found ? found[1] ?? found[0] : "others"];
      }));
    } catch { return new Map(); }
  }

  apply() {
    this.groups = this._groups();
    if (this.groups.size) {
      const first = new Map();
      this.order.forEach((p, k) => { if (!first.has(this.groups.get(p))) first.set(this.groups.get(p), k); });
      this.order.sort((a, b) => first.get(this.groups.get(a)) - first.get(this.groups.get(b)));
    }
    const matches = this._matches();
    const lanes = this.order.filter((p) => !this.hidden.has(p) && matches(this.info.processes[p]));
    const none = lanes.length === 0;
    fill(this.note, none ? "No process matches; all are shown." : `${lanes.length.toLocaleString("en")} of ${count(this.order.length, "process", "processes")} shown`);
    this.app.view.setLanes(none ? [...this.order] : lanes, this.groups);
  }

  move(process, by) {
    const at = this.order.indexOf(process);
    const to = Math.min(this.order.length - 1, Math.max(0, at + by));
    this.order.splice(at, 1);
    this.order.splice(to, 0, process);
    this.apply();
    this.render();
    this.list.querySelector(`[data-process="${process}"] .${by < 0 ? "up" : "down"}`)?.focus();
  }

  _head(group) {
    const members = this.order.filter((p) => this.groups.get(p) === group);
    return make("li", { class: "group" }, make("label", {}, make("input", {
      type: "checkbox", checked: members.some((p) => !this.hidden.has(p)),
      onchange: (event) => {
        for (const p of members) {
          if (event.target.checked) this.hidden.delete(p);
          else this.hidden.add(p);
        }
        this.apply();
        this.render();
      },
    }), make("bdi", {}, group)), make("span", { class: "quiet" }, count(members.length, "process", "processes")));
  }

  render() {
    const shown = this.order.slice(0, MOST);
    let before;
    fill(this.list, ...shown.flatMap((process) => {
      const group = this.groups.get(process);
      const head = group !== undefined && group !== before ? [this._head(group)] : [];
      before = group;
      const name = this.info.processes[process];
      const item = make("li", { "data-process": process, draggable: "true" },
        make("label", {}, make("input", {
          type: "checkbox", checked: !this.hidden.has(process),
          onchange: (event) => {
            if (event.target.checked) this.hidden.delete(process);
            else this.hidden.add(process);
            this.apply();
          },
        }), make("bdi", {}, name)),
        make("span", { class: "quiet" }, this.info.events[process].toLocaleString("en")),
        make("button", { type: "button", class: "up", "aria-label": `Move ${name} up`, onclick: () => this.move(process, -1) }, "↑"),
        make("button", { type: "button", class: "down", "aria-label": `Move ${name} down`, onclick: () => this.move(process, 1) }, "↓"));
      item.addEventListener("dragstart", (event) => { event.dataTransfer.setData("text/plain", String(process)); });
      item.addEventListener("dragover", (event) => event.preventDefault());
      item.addEventListener("drop", (event) => {
        event.preventDefault();
        const from = Number(event.dataTransfer.getData("text/plain"));
        const by = this.order.indexOf(process) - this.order.indexOf(from);
        if (this.order.includes(from) && by) this.move(from, by);
      });
      return [...head, item];
    }), this.order.length > MOST ? make("li", { class: "quiet" }, `and ${(this.order.length - MOST).toLocaleString("en")} more: filter by name`) : null);
  }
}
