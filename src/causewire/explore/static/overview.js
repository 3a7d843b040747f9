// The strip below the diagram: the whole run, and which part of it is on screen.

import { arrays } from "./api.js";

export class Overview {
  constructor(canvas, view, app) {
    this.canvas = canvas;
    this.view = view;
    this.app = app;
    this.columns = null;
    this._strip = null;   // a bitmap of the whole run
    this._pending = false;
    view.addEventListener("change", () => this.redraw());
    new ResizeObserver(() => this.redraw()).observe(canvas);
    const go = (event) => {
      if (!event.buttons) return;
      const box = canvas.getBoundingClientRect();
      const middle = ((event.clientX - box.left) / box.width) * view.end;
      view.show(middle - view.width / 2, middle + view.width / 2);
    };
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); go(event); });
    canvas.addEventListener("pointermove", go);
  }

  async load(where, end, violations) {
    this.marks = violations;
    try {
      const data = await arrays("overview", { ...where, pixels: 600 });
      this.columns = data;
      this.end = end;
      this._strip = null;
      this.redraw();
    } catch { /* the diagram says what is wrong */ }
  }

  // The run is painted when its numbers arrive; while the view moves, only the frame around it does.
  redraw() {
    if (this._pending) return;
    this._pending = true;
    requestAnimationFrame(() => {
      this._pending = false;
      this.draw();
    });
  }

  draw() {
    const { canvas, view } = this;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    const ratio = window.devicePixelRatio || 1;
    const p = this.app.palette;
    const key = `${width}|${height}|${ratio}|${view.end}|${p.paper}`;
    if (!this._strip || key !== this._key) {
      this._strip = this._paint(width, height, ratio, p);
      this._key = key;
      canvas.width = this._strip.width;
      canvas.height = this._strip.height;
    }
    const c = canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.drawImage(this._strip, 0, 0, width, height);
    const left = Math.max(0, (view.low / view.end) * width), right = Math.min(width, (view.high / view.end) * width);
    c.globalAlpha = 0.55;
    c.fillStyle = p.paper;
    c.fillRect(0, 0, left, height);
    c.fillRect(right, 0, width - right, height);
    c.globalAlpha = 1;
    c.strokeStyle = p.chosen;
    c.lineWidth = 2;
    c.strokeRect(left + 1, 1, Math.max(2, right - left - 2), height - 2);
  }

  _paint(width, height, ratio, p) {
    const { view, columns } = this;
    const strip = new OffscreenCanvas(Math.round(width * ratio), Math.round(height * ratio));
    const c = strip.getContext("2d");
    c.scale(ratio, ratio);
    c.fillStyle = p.panel;
    c.fillRect(0, 0, width, height);
    if (columns) {
      const n = columns.events.length;
      const wide = (width / n) * Math.min(1, this.end / view.end);
      const most = Math.max(...columns.events, 1e-9);
      const held = Math.max(...columns.sender.map((v, k) => v + columns.receiver[k]), 1e-9);
      for (let k = 0; k < n; k += 1) {
        const tall = (columns.events[k] / most) * (height - 8);
        c.fillStyle = p.wave;
        c.globalAlpha = 0.55;
        c.fillRect(k * wide, height - tall, wide + 0.5, tall);
        c.globalAlpha = 0.9;
        const up = (columns.sender[k] / held) * height * 0.45, down = (columns.receiver[k] / held) * height * 0.45;
        c.fillStyle = p.sender;
        c.fillRect(k * wide, height - up, wide + 0.5, up);
        c.fillStyle = p.receiver;
        c.fillRect(k * wide, height - up - down, wide + 0.5, down);
      }
      c.globalAlpha = 1;
    }
    c.fillStyle = p.violation;
    for (const mark of this.marks ?? []) c.fillRect((mark.x / view.end) * width - 1, 0, 2, 7);
    return strip;
  }
}
