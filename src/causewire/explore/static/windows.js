// The data for what is on screen: asked for a little more than is seen, so that panning is smooth.

import { arrays } from "./api.js";

const MARGIN = 0.6;   // of the width of the view, on either side
const CLOSER = 2.2;   // zoomed in by more than this, ask again for detail

export class Windows {
  constructor(where, view, arrived) {
    this.where = where;      // data set, run and axis
    this.view = view;
    this.arrived = arrived;
    this.data = null;
    this.overview = null;
    this.version = 0;
    this._asked = null;
    this._busy = false;
  }

  // The answer to the whole run stays at hand for the strip below the diagram.
  reset() {
    this.version += 1;
    this._asked = null;
    this.update(1024, null);
  }

  update(pixels, lanes) {
    const { low, high, width, fastest, slowest, control } = this.view;
    const key = `${lanes ?? ""}|${fastest}|${slowest}|${control}|${this.version}`;
    const asked = this._asked;
    if (asked && asked.key === key && asked.low <= Math.max(low, -1) && asked.high >= Math.min(high, this.view.end)) {
      const wide = asked.high - asked.low;
      const enough = asked.exact || wide <= width * (1 + 2 * MARGIN) * CLOSER;
      if (enough) return;
    }
    if (this._busy) { this._again = { pixels, lanes }; return; }
    const from = Math.max(low - MARGIN * width, 0);
    const to = Math.min(high + MARGIN * width, this.view.end);
    if (!(to >= from)) return;
    this._ask({ key, low: from, high: to, exact: false }, {
      ...this.where, low: from, high: to, lanes, fastest, slowest, control: control ? 1 : null,
      pixels: Math.round(pixels * (to - from) / width),
    });
  }

  async _ask(asked, query) {
    this._busy = true;
    this._asked = asked;
    try {
      const data = await arrays("window", query);
      asked.exact = data.exact;
      if (data.exact && asked.low <= 0 && asked.high >= this.view.end) asked.low = -1;
      if (asked.low <= 0) asked.low = -1;
      data.serial = (this._serial = (this._serial ?? 0) + 1);
      this.data = data;
      this.arrived(data);
    } catch (error) {
      this._asked = null;
      this.failed?.(error);
    } finally {
      this._busy = false;
      if (this._again) {
        const { pixels, lanes } = this._again;
        this._again = null;
        this.update(pixels, lanes);
      }
    }
  }
}
