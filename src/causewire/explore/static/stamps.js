// Round marks as small bitmaps. Without a graphics card a stamp is drawn six times faster than a circle.

export class Stamps {
  constructor() { this._kept = new Map(); }

  // A disc, filled with one colour and ringed with another, and half of its side.
  disc(radius, inside, ring, ratio) {
    const key = `${radius}|${inside}|${ring}|${ratio}`;
    let stamp = this._kept.get(key);
    if (!stamp) {
      if (this._kept.size > 200) this._kept.clear();
      this._kept.set(key, stamp = paint(radius, inside, ring, ratio));
    }
    return stamp;
  }
}

function paint(radius, inside, ring, ratio) {
  const pixels = 2 * Math.ceil((radius + 1) * ratio) + 1;   // odd: its middle is a pixel, as that of a lane
  const canvas = new OffscreenCanvas(pixels, pixels);
  const c = canvas.getContext("2d");
  c.scale(ratio, ratio);
  const half = pixels / 2 / ratio;
  c.beginPath();
  c.arc(half, half, radius, 0, 7);
  c.fillStyle = inside;
  c.fill();
  if (ring) {
    c.lineWidth = 1.3;
    c.strokeStyle = ring;
    c.stroke();
  }
  return { canvas, half };
}
