// One space-time diagram: its canvas, its data, and what lies under the pointer.

import { arrowEnds, draw, TOP } from "./draw.js";
import { Density } from "./density.js";
import { Stamps } from "./stamps.js";
import { Windows } from "./windows.js";

export class Diagram {
  constructor(app, where, info, view = app.view) {
    this.app = app;
    this.view = view;
    this.where = where;
    this.info = info;
    this.density = new Density();
    this.stamps = new Stamps();
    this.windows = new Windows(where, view, () => this.redraw());
    this.windows.failed = (error) => app.say(error.message);
    this.figure = document.createElement("figure");
    this.caption = document.createElement("figcaption");
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-roledescription", "space-time diagram");
    this.figure.append(this.caption, this.canvas);
    this.selection = null;
    this.second = null;
    this.chain = null;
    this.arrows = [];
    this.step = null;
    this.frames = 0;
    this._pending = false;
    this._watch = new ResizeObserver(() => this.redraw());
    this._watch.observe(this.figure);
    this._changed = () => this.redraw();
    view.addEventListener("change", this._changed);
  }

  remove() {
    this._watch.disconnect();
    this.view.removeEventListener("change", this._changed);
    this.figure.remove();
  }

  redraw() {
    if (this._pending) return;
    this._pending = true;
    requestAnimationFrame(() => {
      this._pending = false;
      this._frame();
    });
  }

  // Where things are on the canvas.
  scene() {
    const { view } = this;
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    const gutter = Math.min(Math.max(this.app.gutter ?? 96, this.step ? 150 : 0), width * (this.step ? 0.34 : 0.24));
    const fits = (height - TOP - 4) / Math.max(1, view.lanes.length);
    const lane = Math.min(Math.max(fits, width < 600 ? 16 : 18) * view.tall, Math.max(fits, 110));
    const room = Math.max(0, lane * view.lanes.length - (height - TOP - 4));
    view.scroll = Math.min(Math.max(0, view.scroll), room);
    const places = new Map(view.lanes.map((process, k) => [process, TOP + (k + 0.5) * lane - view.scroll]));
    const scale = (width - gutter) / view.width;
    return {
      width, height, gutter, lane, view,
      ratio: Math.min(window.devicePixelRatio || 1, 2),
      palette: this.app.palette,
      stamps: this.stamps,
      data: this.windows.data,
      names: this.info.processes,
      faults: this.info.faults,
      timed: this.info.axis === "time",
      releases: this.info.copies > 0,
      selection: this.selection,
      second: this.second,
      chain: this.chain,
      arrows: this.arrows,
      step: this.step,
      lane_focus: document.activeElement === this.canvas ? this.app.focus : null,
      x: (value) => gutter + (value - view.low) * scale,
      y: (process) => places.get(process) ?? null,
      place: (px) => view.low + (px - gutter) / scale,
      font: (size, bold = false) => `${bold ? "600 " : ""}${size}px system-ui, "Segoe UI", "Liberation Sans", sans-serif`,
      fitted,
      drawDensity: (c, scene, data) => this.density.draw(c, scene, data),
    };
  }

  _frame() {
    const { canvas } = this;
    const scene = this.scene();
    const { width, height, ratio } = scene;
    if (!width || !height) return;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const c = canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw(c, scene);
    this.frames += 1;
    this.windows.update(width - scene.gutter, this._visible(scene));
    this.app.drawn(this, scene);
  }

  // The processes in view, as the server wants them; null for all.
  _visible(scene) {
    const seen = scene.view.lanes.filter((process) => {
      const y = scene.y(process);
      return y > -2 * scene.lane && y < scene.height + 2 * scene.lane;
    });
    if (seen.length === this.info.processes.length) return null;
    return [...seen].sort((a, b) => a - b).join(",");
  }

  // What is drawn at a place of the canvas: an event, a message, or nothing.
  at(px, py, touch = false) {
    const scene = this.scene();
    const data = scene.data;
    if (!data || px < scene.gutter) return null;
    const near = touch ? 18 : 8;
    let best = null, least = near;
    if (data.exact) {
      for (let k = 0; k < data.event_x.length; k += 1) {
        const dx = scene.x(data.event_x[k]) - px;
        if (dx > near || dx < -near) continue;
        const y = scene.y(data.event_process[k]);
        if (y === null || Math.abs(y - py) > near + 3) continue;
        const important = data.event_mark[k] === 0 || data.event_mark[k] === 3 ? 0 : 0.6;
        const distance = Math.hypot(dx, y - py) + important;
        if (distance < least) { least = distance; best = { row: data.event_row[k], copy: data.event_copy[k] }; }
      }
      if (best) return best;
    }
    least = touch ? 14 : 6;
    for (let k = 0; k < data.copy.length; k += 1) {
      const ends = arrowEnds(scene, data, k);
      if (!ends) continue;
      const distance = toSegment(px, py, ends);
      if (distance < least) { least = distance; best = { row: -1, copy: data.copy[k] }; }
    }
    return best;
  }
}

function toSegment(px, py, [x1, y1, x2, y2]) {
  const dx = x2 - x1, dy = y2 - y1;
  const square = dx * dx + dy * dy;
  const t = square ? Math.max(0, Math.min(1, ((px - x1) * dx + (py - y1) * dy) / square)) : 0;
  return Math.hypot(px - x1 - t * dx, py - y1 - t * dy);
}

const widths = new Map();

// Text cut so that it fits; measuring is slow, so results are kept.
function fitted(c, text, width) {
  const key = `${c.font}|${Math.round(width)}|${text}`;
  let result = widths.get(key);
  if (result === undefined) {
    result = text;
    let keep = text.length;
    while (keep > 1 && c.measureText(result).width > width) {
      keep -= 1;
      result = `${text.slice(0, Math.ceil(keep / 2))}…${text.slice(text.length - Math.floor(keep / 2))}`;
    }
    if (widths.size > 5000) widths.clear();
    widths.set(key, result);
  }
  return result;
}
