// The panel that replays the run under another protocol, and shows both, one below the other.

import { ask, post } from "./api.js";
import { fill, make } from "./dom.js";
import { count, duration } from "./units.js";

export class ReplayPanel {
  constructor(app, panel) {
    this.app = app;
    this.choice = make("select", { id: "replay-protocol" });
    this.about = make("p", { class: "quiet" });
    this.note = make("p", { role: "status" });
    this.table = make("table", { class: "compare" });
    this.button = make("button", { type: "button", onclick: () => this.replay() }, "Replay");
    this.end = make("button", { type: "button", hidden: true, onclick: () => this.close() }, "Close the replay");
    fill(panel, make("h2", {}, "The same run under another protocol"),
      make("p", {}, "The simulator sends the same messages again, each after everything it depended on, over a network with latencies like those of this run."),
      make("div", { class: "row" }, make("label", { for: "replay-protocol" }, "Protocol"), this.choice, this.button, this.end),
      this.about, this.note, this.table);
    this.choice.addEventListener("change", () => this.describe());
    this.load();
  }

  async load() {
    try {
      this.protocols = (await ask("protocols")).protocols;
    } catch { return; }
    fill(this.choice, ...this.protocols.map(({ name }) => make("option", { value: name }, name)));
    this.describe();
  }

  describe() {
    fill(this.about, this.protocols.find(({ name }) => name === this.choice.value)?.summary ?? "");
  }

  async replay() {
    const { app } = this;
    this.button.disabled = true;
    fill(this.note, "Replaying …");
    try {
      const { d } = await post("replay", { ...app.where, protocol: this.choice.value });
      await app.compare(d);
      this.end.hidden = false;
      await this.tell(d);
    } catch (error) {
      fill(this.note, `This run cannot be replayed so: ${error.message}`);
    } finally {
      this.button.disabled = false;
    }
  }

  async tell(d) {
    const { datasets } = await ask("status");
    const [mine, theirs] = await Promise.all([ask("latency", this.app.where), ask("latency", { d, run: 0 })]);
    const name = datasets[d].summary.protocol;
    const reports = [datasets[this.app.where.d].report, datasets[d].report];
    const say = (ns) => duration(ns);
    const rows = [
      ["violations", ...reports.map((r) => (r?.violations ?? "–").toLocaleString("en"))],
      ["mean latency", say(mine.mean ?? 0), say(theirs.mean ?? 0)],
      ["99 % within", say(mine.p99 ?? 0), say(theirs.p99 ?? 0)],
      ["held at the sender", say(mine.parts?.[0] ?? 0), say(theirs.parts?.[0] ?? 0)],
      ["held at the receiver", say(mine.parts?.[2] ?? 0), say(theirs.parts?.[2] ?? 0)],
      ["control packets a message", this.app.info.control_per_message.toFixed(2), datasets[d].summary.control_per_message.toFixed(2)],
    ];
    const before = reports[0]?.violations, after = reports[1]?.violations;
    const slower = mine.mean ? theirs.mean / mine.mean : 1;
    const cost = slower >= 1 ? `${slower.toFixed(1)} times the mean latency` : `${Math.round(100 * (1 - slower))} % less mean latency`;
    fill(this.note, `Under ${name} ${after === 0 ? "nothing is overtaken" : count(after, "violation")}${before ? `, where this run has ${count(before, "violation")}` : ""}, at ${cost}.`);
    fill(this.table, make("caption", {}, "Side by side"),
      make("thead", {}, make("tr", {}, ...["measure", "this run", name].map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, ...rows.map(([head, a, b]) => make("tr", {}, make("th", { scope: "row" }, head), make("td", {}, String(a)), make("td", {}, String(b))))));
  }

  close() {
    this.app.compare(null);
    this.end.hidden = true;
    fill(this.note);
    fill(this.table);
  }
}
