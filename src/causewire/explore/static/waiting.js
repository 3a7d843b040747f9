// The panel that tells what processes spent their waiting on, over time and one by one.

import { ask } from "./api.js";
import { fill, make } from "./dom.js";
import { duration } from "./units.js";

const HEIGHT = 130;
const COLOURS = ["--future", "--sender", "--fault", "--receiver", "--control"];

export class WaitingPanel {
  constructor(app, panel) {
    this.app = app;
    this.panel = panel;
    this.canvas = make("canvas", { class: "timeline", height: String(HEIGHT), role: "img", "aria-label": "Messages held over the time in view, by what they waited for" });
    this.words = make("p");
    this.legend = make("table", { class: "cone" });
    this.table = make("table", { class: "waits" });
    fill(panel, make("h2", {}, "What was waited for"), this.words, this.canvas, this.legend,
      make("p", { class: "quiet" }, "The picture shows how many messages were held at each moment in view, at their sender or at their receiver. A wait counts for what arrived when it ended."),
      make("div", { class: "scroll" }, this.table));
    app.view.addEventListener("change", () => this.later());
  }

  later() {
    if (this.panel.hidden) return;
    clearTimeout(this._timer);
    this._timer = setTimeout(() => this.load(), 150);
  }

  async load() {
    const { view, where, info } = this.app;
    if (!where) return;
    const all = view.lanes.length === info.processes.length;
    const low = Math.max(0, view.low), high = Math.min(view.end, view.high);
    try {
      this.data = await ask("waiting", { ...where, low, high, lanes: all ? null : view.lanes.join(",") });
    } catch { return; }
    this.draw();
  }

  draw() {
    const { data, canvas } = this;
    const width = canvas.clientWidth;
    if (!data || !width) return;
    const say = (value) => (data.axis === "time" ? duration(value) : `${Math.round(value)} rows`);
    const style = getComputedStyle(document.documentElement);
    const ratio = window.devicePixelRatio || 1;
    canvas.width = width * ratio;
    canvas.height = HEIGHT * ratio;
    const c = canvas.getContext("2d");
    c.scale(ratio, ratio);
    c.clearRect(0, 0, width, HEIGHT);
    const n = data.columns[0].length;
    const sums = Array.from({ length: n }, (_, k) => data.columns.reduce((sum, column) => sum + column[k], 0));
    const most = Math.max(...sums, 1e-9);
    const at = new Array(n).fill(0);
    data.columns.forEach((column, reason) => {
      c.fillStyle = style.getPropertyValue(COLOURS[reason]);
      column.forEach((value, k) => {
        const tall = (value / most) * (HEIGHT - 16);
        const left = Math.floor((k / n) * width), right = Math.floor(((k + 1) / n) * width);
        c.fillRect(left, HEIGHT - at[k] - tall, right - left, tall);
        at[k] += tall;
      });
    });
    c.fillStyle = this.app.palette.quiet;
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "top";
    c.fillText(`up to ${most < 10 ? most.toFixed(1) : Math.round(most)} messages held at a time`, 0, 0);
    const totals = data.reasons.map((_, k) => data.processes.reduce((sum, [, of]) => sum + of[k][0] + of[k][1], 0));
    const whole = totals.reduce((a, b) => a + b, 0);
    fill(this.words, whole ? "" : "Nothing in view was held back.");
    fill(this.legend, whole ? make("caption", {}, "Waiting for") : null, make("tbody", {}, ...data.reasons.map((reason, k) => (totals[k]
      ? make("tr", {}, make("th", { scope: "row" }, make("i", { class: `swatch reason${k}` }), reason), make("td", {}, say(totals[k])), make("td", {}, `${Math.round(100 * totals[k] / whole)} %`))
      : null))));
    const rows = data.processes.map(([p, of]) => [p, of.reduce((sum, [a]) => sum + a, 0), of.reduce((sum, [, b]) => sum + b, 0)])
      .sort((a, b) => b[1] + b[2] - a[1] - a[2]).slice(0, 60);
    fill(this.table, rows.length ? make("caption", {}, "Time that messages were held, all messages added up") : null,
      rows.length ? make("thead", {}, make("tr", {}, ...["process", "in its send buffer", "in its receive buffer"].map((head) => make("th", { scope: "col" }, head)))) : null,
      make("tbody", {}, ...rows.map(([p, a, b]) => make("tr", {}, make("th", { scope: "row" }, make("bdi", {}, this.app.info.processes[p])), make("td", {}, say(a)), make("td", {}, say(b))))));
  }
}
