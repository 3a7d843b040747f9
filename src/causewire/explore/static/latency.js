// The panel with the latencies of what is in view, split by where the time went; brushing filters.

import { ask, recorded } from "./api.js";
import { fill, make } from "./dom.js";
import { count, duration } from "./units.js";

const HEIGHT = 150;

export class LatencyPanel {
  constructor(app, panel) {
    this.app = app;
    this.canvas = make("canvas", {
      class: "histogram", height: String(HEIGHT), tabindex: "0", role: "slider", "aria-label": "Latencies shown, from",
      "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": "0",
    });
    this.words = make("p", {}, "");
    this.range = make("p", { class: "quiet", role: "status" }, "");
    this.reset = make("button", { type: "button", onclick: () => this.filter(null, null), hidden: true }, "Show all messages");
    this.parts = make("table", { class: "cone" });
    this.explained = make("p", { class: "quiet" });
    fill(panel, make("h2", {}, "Latency"), this.words, this.canvas, this.range, this.reset, this.parts, this.explained,
      make("p", { class: "quiet" }, `The scale is logarithmic. Drag across the histogram, or use the arrow keys on it, to show only messages of these latencies. ${recorded ? "The numbers are of the whole run." : "The numbers are of the messages in view."}`));
    this.panel = panel;
    this._brush();
    app.view.addEventListener("change", () => this.later());
  }

  later() {
    if (this.panel.hidden) return;
    clearTimeout(this._timer);
    this._timer = setTimeout(() => this.load(), 150);
  }

  async load() {
    const { view } = this.app;
    const where = this.app.where;
    if (!where) return;
    const all = view.lanes.length === this.app.info.processes.length;
    try {
      this.data = await ask("latency", { ...where, low: view.low, high: view.high, lanes: all ? null : view.lanes.join(",") });
    } catch { return; }
    this.draw();
  }

  say(value) { return this.data.axis === "time" ? duration(value) : `${Math.round(value)} rows`; }

  draw() {
    const { data, canvas } = this;
    const p = this.app.palette;
    const width = canvas.clientWidth;
    if (!data || !width) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = width * ratio;
    canvas.height = HEIGHT * ratio;
    const c = canvas.getContext("2d");
    c.scale(ratio, ratio);
    c.clearRect(0, 0, width, HEIGHT);
    if (!data.count) {
      fill(this.words, "No message in view was delivered.");
      fill(this.parts);
      return;
    }
    fill(this.words, `${count(data.count, "delivery", "deliveries")}: half within ${this.say(data.median)}, 99 % within ${this.say(data.p99)}, the slowest after ${this.say(data.most)}.`);
    const bottom = HEIGHT - 20;
    const most = Math.max(...data.bins.map(([n]) => n));
    const wide = width / data.bins.length;
    data.bins.forEach(([n, sender, network, receiver], k) => {
      const sum = sender + network + receiver || 1;
      let at = bottom;
      const tall = (n / most) * (bottom - 6);
      for (const [part, colour] of [[network || (sum === 1 ? 1 : 0), p.wave], [sender, p.sender], [receiver, p.receiver]]) {
        const height = tall * (part / sum);
        c.fillStyle = colour;
        c.fillRect(k * wide + 0.5, at - height, wide - 1, height);
        at -= height;
      }
    });
    const { fastest, slowest } = this.app.view;
    if (fastest !== null) {
      c.fillStyle = p.panel;
      c.globalAlpha = 0.75;
      c.fillRect(0, 0, this._x(fastest), bottom);
      c.fillRect(this._x(slowest), 0, width, bottom);
      c.globalAlpha = 1;
    }
    c.fillStyle = p.quiet;
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "bottom";
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      const k = Math.round(share * data.bins.length);
      c.textAlign = share === 0 ? "left" : share === 1 ? "right" : "center";
      c.fillText(k ? this.say(data.edges[k]) : "0", share * width, HEIGHT - 2);
    }
    const total = data.parts.reduce((a, b) => a + b, 0) || 1;
    fill(this.parts, make("caption", {}, `Where the time went, on average ${this.say(data.mean)}`), make("tbody", {},
      ...[["sender", "held at the sender", 0], ["wave", "on the network", 1], ["receiver", "held at the receiver", 2]].map(([name, words, k]) =>
        make("tr", {}, make("th", { scope: "row" }, make("i", { class: `swatch ${name}` }), words), make("td", {}, this.say(data.parts[k])), make("td", {}, `${Math.round(100 * data.parts[k] / total)} %`))),
      data.unavoidable === null ? null
        : make("tr", {}, make("th", { scope: "row" }, make("i", { class: "swatch none" }), "of all this, unavoidable"), make("td", {}, this.say(data.unavoidable)), make("td", {}, `${Math.round(100 * data.unavoidable / total)} %`))));
    fill(this.explained, data.unavoidable === null ? "" : "Unavoidable is what a protocol that knows everything would take: it sends at once, and delivers as soon as everything that happened before has arrived.");
  }

  _x(value) {
    const { edges } = this.data;
    const width = this.canvas.clientWidth;
    let k = edges.findIndex((edge) => edge > value) - 1;
    if (k < 0) k = value <= edges[0] ? 0 : edges.length - 1;
    return (k / (edges.length - 1)) * width;
  }

  _bin(px) {
    const n = this.data.edges.length - 1;
    return Math.min(n, Math.max(0, Math.round((px / this.canvas.clientWidth) * n)));
  }

  filter(fastest, slowest) {
    const { view } = this.app;
    view.fastest = fastest;
    view.slowest = slowest;
    this.reset.hidden = fastest === null;
    this.canvas.setAttribute("aria-valuetext", fastest === null ? "all messages" : `${this.say(fastest)} to ${this.say(slowest)}`);
    fill(this.range, fastest === null ? "" : `The diagram shows messages that took ${this.say(fastest)} to ${this.say(slowest)}.`);
    view.changed();
    this.draw();
  }

  _brush() {
    const { canvas } = this;
    let from = null;
    const place = (event) => this._bin(event.clientX - canvas.getBoundingClientRect().left);
    canvas.addEventListener("pointerdown", (event) => {
      if (!this.data?.count) return;
      canvas.setPointerCapture(event.pointerId);
      from = place(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (from === null) return;
      this._between(from, place(event));
    });
    canvas.addEventListener("pointerup", () => { from = null; });
    this.first = 0;
    this.last = null;
    canvas.addEventListener("keydown", (event) => {
      if (!this.data?.count) return;
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (event.key === "Escape") { this.first = 0; this.last = null; this.filter(null, null); return; }
      if (!step) return;
      event.preventDefault();
      const n = this.data.edges.length - 1;
      this.last ??= n;
      if (event.shiftKey) this.last = Math.min(n, Math.max(this.first + 1, this.last + step));
      else this.first = Math.min(this.last - 1, Math.max(0, this.first + step));
      canvas.setAttribute("aria-valuenow", String(Math.round(100 * this.first / n)));
      this._between(this.first, this.last);
    });
  }

  _between(a, b) {
    if (a === b) return;
    const { edges } = this.data;
    this.filter(edges[Math.min(a, b)], edges[Math.max(a, b)]);
  }
}
