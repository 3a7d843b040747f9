// The view of a second diagram that keeps step with the main one, at the same scale.
//
// The two runs take different times. Without a selection the middle of either screen is at the same
// share of its sends; with one, the same message is at the same place of both screens.

export class LinkedView extends EventTarget {
  constructor(main, end, pairs) {
    super();
    this.main = main;
    this.own = end;
    this.pairs = pairs;    // places in the main run and here, both growing
    this.anchor = null;    // how much later the selected message is here
    main.addEventListener("change", () => this.dispatchEvent(new Event("change")));
  }

  _shift() {
    const { main } = this;
    if (this.anchor !== null) return this.anchor;
    if (main.width >= 0.9 * main.end) return 0;
    const middle = (main.low + main.high) / 2;
    return this._map(middle) - middle;
  }

  // From a place in the main run to that of the same share of sends here.
  _map(x) {
    const [there, here] = this.pairs;
    if (!there.length) return x;
    if (x <= there[0]) return here[0] + x - there[0];
    const last = there.length - 1;
    if (x >= there[last]) return here[last] + x - there[last];
    let a = 0, b = last;
    while (b - a > 1) {
      const k = (a + b) >> 1;
      if (there[k] <= x) a = k; else b = k;
    }
    const share = there[b] > there[a] ? (x - there[a]) / (there[b] - there[a]) : 0;
    return here[a] + share * (here[b] - here[a]);
  }

  get low() { return this.main.low + this._shift(); }
  get high() { return this.main.high + this._shift(); }
  get width() { return this.main.width; }
  get end() { return this.own; }
  get lanes() { return this.main.lanes; }
  get groups() { return this.main.groups; }
  get scroll() { return this.main.scroll; }
  set scroll(value) { this.main.scroll = value; }
  get tall() { return this.main.tall; }
  get fastest() { return this.main.fastest; }
  get control() { return this.main.control; }
  get slowest() { return this.main.slowest; }
}
