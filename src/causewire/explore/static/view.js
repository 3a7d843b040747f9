// What part of the run is on screen: a stretch of the axis, and which processes in which order.

export class View extends EventTarget {
  constructor() {
    super();
    this.end = 1;
    this.low = 0;
    this.high = 1;
    this.lanes = [];      // processes from top to bottom
    this.groups = new Map();  // the group of each process, if there are groups
    this.scroll = 0;      // pixels by which the lanes are scrolled
    this.tall = 1;        // how much taller lanes are than what fits
    this.fastest = null;  // of the latencies that are shown
    this.slowest = null;
    this.control = false; // whether acks, permits and other control packets are drawn
  }

  changed() { this.dispatchEvent(new Event("change")); }

  setEnd(end, fit) {
    const whole = this.low <= 0 && this.high >= this.end;
    const atEnd = this.high >= this.end * 0.999;
    const width = this.high - this.low;
    this.end = Math.max(end, 1e-9);
    if (fit || whole) this.fit();
    else if (atEnd) this.show(this.end - width, this.end);
    else this.changed();
  }

  fit() { this.show(-this.end * 0.01, this.end * 1.01); }

  show(low, high) {
    const least = Math.max(this.end * 1e-9, 1e-6);
    const most = this.end * 1.5;
    let width = Math.min(Math.max(high - low, least), most);
    const middle = (low + high) / 2;
    low = middle - width / 2;
    low = Math.min(Math.max(low, -width * 0.5), this.end - width * 0.5);
    this.low = low;
    this.high = low + width;
    this.changed();
  }

  get width() { return this.high - this.low; }

  pan(share) { this.show(this.low + share * this.width, this.high + share * this.width); }

  // Zoom by a factor about a place, which stays where it is.
  zoom(factor, about = (this.low + this.high) / 2) {
    this.show(about - (about - this.low) / factor, about + (this.high - about) / factor);
  }

  // The same about a place given as a share of the width.
  zoomAt(factor, share) { this.zoom(factor, this.low + share * this.width); }

  // Bring a place into view, without zooming unless it would not be told apart.
  reveal(x, width = null) {
    const wide = width === null ? this.width : Math.min(width, this.width);
    const margin = 0.15 * wide;
    if (width === null && x > this.low + margin && x < this.high - margin) return;
    this.show(x - wide / 2, x + wide / 2);
  }

  setLanes(lanes, groups = new Map()) {
    this.lanes = lanes;
    this.groups = groups;
    this.changed();
  }
}
