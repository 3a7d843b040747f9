// The explorer: joins the diagram, the panels and the server.

import { ask, recorded } from "./api.js";
import { Diagram } from "./diagram.js";
import { byId, fill, make } from "./dom.js";
import { exportPng, exportSvg, exportTrace } from "./export.js";
import { GESTURES, KEYS, listen } from "./input.js";
import { LatencyPanel } from "./latency.js";
import { Overview } from "./overview.js";
import { LinkedView } from "./linked.js";
import { palette } from "./palette.js";
import { ProcessesPanel } from "./processes.js";
import { ReplayPanel } from "./replay.js";
import { SelectionPanel } from "./selection.js";
import { StepsPanel } from "./steps.js";
import { Tabs } from "./tabs.js";
import { count, readSoFar } from "./units.js";
import { View } from "./view.js";
import { ViolationsPanel } from "./violations.js";
import { WaitingPanel } from "./waiting.js";

const LEGEND = [
  ["send", "send"], ["release", "release"], ["receive", "arrival"], ["deliver", "delivery"],
  ["sender", "held at the sender"], ["receiver", "held at the receiver"],
  ["past", "causal past"], ["future", "causal future"], ["chosen", "selected"],
];

class App {
  constructor() {
    this.view = new View();
    this.palette = palette();
    this.diagrams = [];
    this.where = null;     // data set, run and axis of the main diagram
    this.info = null;
    this.focus = null;     // the process that keys are about
    this.pairing = false;
    this.tabs = new Tabs(byId("tabs"), byId("panels"));
    this.selection = new SelectionPanel(this, this.tabs.add("selection", "Selection"));
    this.violations = new ViolationsPanel(this, this.tabs.add("violations", "Violations"));
    this.latency = new LatencyPanel(this, this.tabs.add("latency", "Latency"));
    this.waiting = new WaitingPanel(this, this.tabs.add("waiting", "Waiting"));
    this.processes = new ProcessesPanel(this, this.tabs.add("processes", "Processes"));
    this.steps = new StepsPanel(this, this.tabs.add("steps", "Steps"));
    this.replay = recorded ? null : new ReplayPanel(this, this.tabs.add("replay", "Replay"));
    this.tabs.changed = (name) => {
      if (name === "latency") this.latency.load();
      if (name === "waiting") this.waiting.load();
      if (name === "steps" && !this.main.step) this.steps.go(this.main.selection?.row ?? 0);
    };
    this.overview = new Overview(byId("overview"), this.view, this);
    this._controls();
    this._colours();
    this.ready = this._start();
  }

  get main() { return this.diagrams[0]; }

  say(text) { fill(byId("in-view"), text); }

  // -- reading the trace ----------------------------------------------------------------

  async _start() {
    let status;
    for (;;) {
      status = await this._status();
      if (status?.ready || status?.preview) break;
      if (status?.error) { this.say(status.error); fill(byId("verdict"), "cannot be read"); byId("verdict").className = "bad"; }
      else this.say(status ? readSoFar(status) : "The server does not answer.");
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    await this.open(status.first ?? 0);
    if (!recorded) this._poll();
    else if ((await ask("status")).datasets.length > 1) await this.compare(1);
  }

  async _status() {
    try {
      const status = (await ask("status")).datasets[0];
      if (status.title !== this._title) {
        this._title = status.title;
        fill(byId("title"), status.title);
        document.title = `${status.title} – Causewire explorer`;
      }
      return status;
    } catch { return null; }
  }

  // Ask now and then whether there is news: the check is done, or files have grown.
  async _poll() {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, this.status.following ? 700 : this.status.report ? 5000 : 300));
      const status = await this._status();
      if (status?.error) this.say(status.error);
      if (!status) { this.say("The server has stopped. What is on screen stays."); continue; }
      if (status.version === this.status.version) continue;
      this.status = status;
      if (this.info.preview) {
        if (!status.ready) continue;
        const { low, high } = this.view;
        await this.open(status.first ?? 0);
        this.view.show(low, high);
        continue;
      }
      if (!this._settled && status.report) {
        this._settled = true;
        if (status.first !== this.where.run && !this.main.selection) { await this.open(status.first); continue; }
      }
      if (status.following && status.error === "") await this._refresh();
      await this._judged();
    }
  }

  async _refresh() {
    const info = await ask("run", this.where);
    this.info = info;
    this.main.info = info;
    this._size();
    this.processes.set(info);
    this.main.windows.version += 1;
    this.view.setEnd(info.end, false);
    this.overview.load(this.where, info.end, this.violations.list);
  }

  async open(run, axis = null) {
    this.status = await this._status();
    const runs = this.status.runs ?? [];
    byId("run-label").hidden = runs.length < 2;
    this.where = { d: 0, run, axis };
    this.info = await ask("run", this.where);
    this._runs();
    this.where.axis = this.info.axis;
    byId("axis").value = this.info.axis;
    byId("axis").disabled = !this.info.timed || recorded;
    byId("control-label").hidden = !this.info.control_per_message;
    this.focus = null;
    this.diagrams.forEach((diagram) => diagram.remove());
    this.diagrams = [];
    this.gutter = this._gutter(this.info.processes);
    this._add(this.where, this.info, "");
    this.view.setEnd(this.info.end, true);
    this.processes.info = null;
    this.processes.set(this.info);
    this._size();
    this.clear();
    if (this.info.preview) { this.overview.load(this.where, this.info.end, []); return; }
    await this._judged();
    this.latency.later();
    this.waiting.later();
    if (this.info.name.startsWith("verify ")) this.tabs.show("steps");   // a counterexample
  }

  // The list of runs: those with violations are marked.
  _runs() {
    const runs = (this.status.runs ?? []).map(({ name, violated }, k) => [k, violated ? `${name} (violated)` : name]);
    if (this.where.run >= runs.length) runs.push([this.where.run, this.info.name]);
    fill(byId("run"), ...runs.map(([value, name]) => make("option", { value, selected: value === this.where.run }, name)));
  }

  _gutter(names) {
    const c = new OffscreenCanvas(1, 1).getContext("2d");
    c.font = "600 12px system-ui, sans-serif";
    const widest = Math.max(...names.slice(0, 500).map((name) => c.measureText(name).width), 30);
    return Math.round(Math.min(170, widest + 26));
  }

  _add(where, info, caption, view = this.view) {
    const diagram = new Diagram(this, where, info, view);
    fill(diagram.caption, caption);
    diagram.canvas.setAttribute("aria-label",
      `${caption || this.status.title}: ${count(info.rows, "event")} of ${count(info.processes.length, "process", "processes")}. Arrow keys move, plus and minus zoom, full stop and comma go from event to event.`);
    listen(this, diagram);
    this.diagrams.push(diagram);
    byId("diagrams").append(diagram.figure);
    byId("diagrams").classList.toggle("two", this.diagrams.length > 1);
    this.diagrams.forEach((other) => other.redraw());
    return diagram;
  }

  _size() {
    const { info } = this;
    const messages = info.preview ? "" : `${count(info.messages, "message")}, `;
    fill(byId("size"), `${count(info.rows, "event")}, ${messages}${count(info.processes.length, "process", "processes")}${this.status.refused ? `; ${this.status.refused.toLocaleString("en")} not understood` : ""}`);
  }

  async _judged() {
    const { report } = this.status;
    const verdict = byId("verdict");
    verdict.className = !report ? "busy" : report.trouble || report.violations || !report.conclusive ? "bad" : "good";
    fill(verdict, !report ? "checking …" : report.trouble ? "cannot be judged" : report.violations ? count(report.violations, "violation") : report.conclusive ? "causally ordered" : "cannot tell");
    if (!recorded) this._runs();
    const answer = await ask("violations", this.where);
    this.violations.set(answer, report, this.status.remarks ?? []);
    this.tabs.title("violations", report?.violations ? `Violations ${report.violations.toLocaleString("en")}` : "Violations");
    this.overview.load(this.where, this.info.end, answer.list);
  }

  // -- what the diagrams tell -----------------------------------------------------------

  drawn(diagram, scene) {
    if (diagram !== this.main || !scene.data) return;
    const { data } = scene;
    const filter = this.view.fastest === null ? "" : ", filtered by latency";
    const text = this.info.preview ? "A first picture: how many events there are. Messages follow in a moment." : data.exact
      ? `Every event and message around here is drawn${filter}.`
      : `Too much to draw one by one: waves show how many events there are; of ${count(data.messages, "message")} around here ${data.drawn.toLocaleString("en")} are drawn, the slowest and a sample${filter}. Zoom in for all.`;
    const seen = this.view.lanes.filter((p) => scene.y(p) > 30 && scene.y(p) < scene.height).length;
    const lanes = seen < this.view.lanes.length ? ` ${seen} of ${count(this.view.lanes.length, "process", "processes")} are in view: drag up and down, or press [ for lower lanes.` : "";
    this._tell(text + lanes);
    this.firstPicture ??= performance.now();
  }

  _tell(text) {
    if (text !== this._said) { this._said = text; this.say(text); }
  }

  hover(diagram, [px, py], event) {
    const found = diagram.at(px, py);
    diagram.canvas.classList.toggle("over", Boolean(found));
    const tip = byId("tip");
    if (!found) { tip.hidden = true; return; }
    const key = `${found.row}|${found.copy}|${diagram.where.d}`;
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - 260)}px`;
    tip.style.top = `${Math.min(event.clientY + 16, innerHeight - 60)}px`;
    if (key === this._hovered) { tip.hidden = !tip.textContent; return; }
    this._hovered = key;
    tip.hidden = true;
    clearTimeout(this._hover);
    this._hover = setTimeout(async () => {
      try {
        const told = await ask("tell", { ...diagram.where, row: found.row >= 0 ? found.row : null, copy: found.copy });
        if (this._hovered !== key) return;
        fill(tip, told.words);
        tip.hidden = false;
      } catch { /* no tip */ }
    }, 60);
  }

  unhover() {
    this._hovered = null;
    clearTimeout(this._hover);
    byId("tip").hidden = true;
  }

  // -- selecting --------------------------------------------------------------------------

  async choose(diagram, { row, copy }, second) {
    const query = { ...diagram.where, copy, row: row >= 0 ? row : null };
    try {
      const chosen = await ask("select", query);
      const before = diagram.selection;
      if (second && before) {
        const relation = await ask("relate", { ...diagram.where, a: before.row, b: chosen.row });
        this.pairing = false;
        diagram.second = chosen;
        diagram.arrows = relation.chain;
        this.selection.render(before, relation, null);
        if (relation.chain.length) this._include([chosen.x, before.x]);
      } else {
        for (const other of this.diagrams) this._unchoose(other);
        diagram.selection = chosen;
        this._alsoIn(diagram, chosen);
        this.focus = chosen.process;
        this.selection.render(chosen, null, this.pairing);
      }
      this.tabs.show("selection");
      this.diagrams.forEach((other) => other.redraw());
    } catch (error) { this.say(error.message); }
  }

  // The same message in the other diagrams, such as a replay.
  async _alsoIn(diagram, chosen) {
    if (chosen.copy < 0) return;
    for (const other of this.diagrams) {
      if (other === diagram) continue;
      const { copy } = await ask("same", { ...diagram.where, copy: chosen.copy, other: other.where.d, other_run: other.where.run });
      if (copy < 0 || diagram.selection !== chosen) continue;
      other.selection = await ask("select", { ...other.where, copy });
      const delivered = chosen.process !== chosen.source;
      if (other.view !== this.view) other.view.anchor = (delivered ? other.selection.until : other.selection.x) - chosen.x;
      other.redraw();
    }
  }

  // The chain of a violation in the other diagrams, where it was kept in order.
  async _chainIn(diagram, copies) {
    for (const other of this.diagrams) {
      if (other === diagram) continue;
      const found = await Promise.all(copies.map((copy) => ask("same", { ...diagram.where, copy, other: other.where.d, other_run: other.where.run })));
      other.chain = new Set(found.map(({ copy }) => copy).filter((copy) => copy >= 0));
      const told = await Promise.all([...other.chain].map((copy) => ask("select", { ...other.where, copy })));
      const shift = other.view.anchor ?? 0;
      if (told.length) this._include(told.flatMap(({ x, until }) => [x - shift, until - shift]));
      other.redraw();
    }
  }

  _unchoose(diagram) {
    diagram.selection = diagram.second = diagram.chain = null;
    if (diagram.view !== this.view) diagram.view.anchor = null;
    diagram.arrows = [];
    diagram.redraw();
  }

  clear() {
    this.pairing = false;
    this.diagrams.forEach((diagram) => this._unchoose(diagram));
    this.selection.render(null, null, null);
    this.view.changed();
  }

  mark() {
    if (!this.main.selection) return;
    this.pairing = true;
    this.selection.render(this.main.selection, null, true);
  }

  closer() {
    const chosen = this.main.selection;
    if (!chosen) return;
    this._revealLane(this.main, chosen.process);
    const until = chosen.until ?? chosen.x;
    const wide = Math.max((until - chosen.x) * 4, this.view.end / this.info.rows * 40);
    this.view.show((chosen.x + until) / 2 - wide / 2, (chosen.x + until) / 2 + wide / 2);
  }

  // The place that keys zoom about: what is selected, if it is on screen.
  about() {
    const x = this.main.selection?.x;
    return x > this.view.low && x < this.view.high ? x : undefined;
  }

  _include(places) {
    const low = Math.min(...places), high = Math.max(...places);
    if (low >= this.view.low && high <= this.view.high) return;
    const margin = (high - low) * 0.2 || this.view.width / 4;
    this.view.show(Math.min(this.view.low, low - margin), Math.max(this.view.high, high + margin));
  }

  moveFocus(diagram, by) {
    const { lanes } = this.view;
    const at = lanes.indexOf(this.focus);
    this.focus = lanes[Math.min(lanes.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
    this._revealLane(diagram, this.focus);
    this.say(`Process ${this.info.processes[this.focus]}`);
    this.view.changed();
  }

  _revealLane(diagram, process) {
    const scene = diagram.scene();
    const y = scene.y(process);
    if (y === null) return;
    if (y < 60) this.view.scroll -= 60 - y;
    if (y > scene.height - 30) this.view.scroll += y - scene.height + 30;
  }

  // From event to event with the keyboard; the next one may be off screen.
  async walk(diagram, by) {
    const last = diagram.second ?? diagram.selection;
    this.focus ??= this.view.lanes[0];
    const query = last && last.process === this.focus
      ? { row: last.row, by }
      : { process: this.focus, x: (this.view.low + this.view.high) / 2 };
    try {
      const found = await ask("near", { ...diagram.where, ...query });
      this.view.reveal(found.x);
      const pairing = this.pairing;
      await this.choose(diagram, { row: found.row, copy: found.copy }, pairing);
    } catch (error) { this.say(error.message); }
  }

  nextViolation(by) { this.tabs.show("violations"); this.violations.go(this.violations.at + by); }

  async showViolation(violation) {
    const diagram = this.main;
    const { first, second } = violation;
    try {
      const chosen = await ask("select", { ...diagram.where, copy: second.copy >= 0 ? second.copy : null, row: violation.row });
      const overtaken = first.copy >= 0 ? await ask("select", { ...diagram.where, copy: first.copy }) : null;
      for (const other of this.diagrams) this._unchoose(other);
      diagram.selection = chosen;
      diagram.chain = new Set([...violation.chain, first.copy]);
      const also = this._alsoIn(diagram, chosen);
      const places = [chosen.x, overtaken?.x ?? chosen.x, overtaken?.until ?? chosen.x];
      const low = Math.min(...places), high = Math.max(...places);
      const margin = Math.max((high - low) * 0.25, this.view.end * 1e-6);
      this._revealLane(diagram, chosen.process);
      this.selection.render(chosen, { relation: "violation", words: violation.words }, null);
      this.view.show(low - margin, high + margin);
      await also;
      await this._chainIn(diagram, [...diagram.chain].filter((copy) => copy >= 0));
    } catch (error) { this.say(error.message); }
  }

  // Messages that make the point of what is selected; none if the whole view does.
  essential() {
    const { chain, arrows, selection } = this.main;
    const copies = new Set([...(chain ?? []), ...arrows.map((arrow) => arrow.copy)]);
    if ((chain || arrows.length) && selection?.copy >= 0) copies.add(selection.copy);
    return [...copies].filter((copy) => copy >= 0);
  }

  involved() {
    const { chain, arrows, selection, second, windows } = this.main;
    const wanted = new Set();
    for (const mark of [selection, second]) if (mark) [mark.process, mark.source, mark.target].forEach((p) => p !== undefined && wanted.add(p));
    for (const arrow of arrows) { wanted.add(arrow.from); wanted.add(arrow.to); }
    const data = windows.data;
    data?.copy.forEach((copy, k) => { if (chain?.has(copy)) { wanted.add(data.copy_from[k]); wanted.add(data.copy_to[k]); } });
    return wanted;
  }

  // -- steps and replays ------------------------------------------------------------------

  atStep(step) {
    this.main.step = step;
    if (step) this.view.reveal(step.x);
    this.main.redraw();
  }

  async compare(d) {
    while (this.diagrams.length > 1) this.diagrams.pop().remove();
    byId("diagrams").classList.toggle("two", d !== null);
    fill(this.main.caption, d === null ? "" : "this run");
    if (d === null) { this.view.setEnd(this.info.end, true); return; }
    const where = { d, run: 0, axis: this.where.axis };
    const info = await ask("run", where);
    const { datasets } = await ask("status");
    const pairs = await ask("align", { ...this.where, other: d, other_run: 0 });
    this._add(where, info, datasets[d].title, new LinkedView(this.view, info.end, pairs));
    this.view.setEnd(Math.max(info.end, this.info.end), true);
  }

  // -- controls -----------------------------------------------------------------------------

  _controls() {
    byId("export-trace").hidden = recorded;
    const on = (id, run) => byId(id).addEventListener("click", run);
    on("zoom-in", () => this.view.zoom(1.6, this.about()));
    on("zoom-out", () => this.view.zoom(1 / 1.6, this.about()));
    on("fit", () => this.view.fit());
    on("export-svg", () => exportSvg(this.main, this.status.title));
    on("export-png", () => exportPng(this.main));
    on("export-trace", () => exportTrace(this));
    on("help-open", () => byId("help").showModal());
    on("theme", () => this._theme());
    byId("run").addEventListener("change", (event) => { this._settled = true; this.open(Number(event.target.value)); });
    byId("axis").addEventListener("change", (event) => this.open(this.where.run, event.target.value));
    byId("control").addEventListener("change", (event) => { this.view.control = event.target.checked; this.view.changed(); });
    byId("find").addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        const found = await ask("find", { ...this.where, q: byId("find-text").value });
        this.view.reveal(found.x);
        await this.choose(this.main, { row: -1, copy: found.copy }, false);
      } catch (error) { this.say(error.message); }
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "?" && !/input|select/i.test(event.target.tagName)) byId("help").showModal();
    });
    fill(byId("keys"), ...[...GESTURES, ...KEYS.map((key) => [key.shown, key.words])].flatMap(([key, words]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, words)]));
    fill(byId("legend"), ...LEGEND.map(([name, words]) => make("li", {}, make("i", { class: `swatch ${name}` }), words)));
  }

  _theme() {
    const root = document.documentElement;
    root.dataset.theme = this.palette.dark ? "light" : "dark";
    this._colours();
  }

  _colours() {
    this.palette = palette();
    fill(byId("theme"), this.palette.dark ? "Light" : "Dark");
    this.diagrams.forEach((diagram) => diagram.redraw());
    this.overview.draw();
    this.latency.draw();
    this.waiting.draw();
  }
}

const app = new App();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => app._colours());
globalThis.explorer = app;   // for tests, and for the curious
