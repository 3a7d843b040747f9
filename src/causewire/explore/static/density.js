// A picture of many events: for each process a wave, as high as there are events, with what was
// held at the sender above it and what was held at the receiver below it. It is painted once, when
// the numbers arrive, and then only stretched.

const HEIGHT = 24;   // pixels of a lane in the bitmap

function rgb(colour) {
  const c = new OffscreenCanvas(1, 1).getContext("2d");
  c.fillStyle = colour;
  c.fillRect(0, 0, 1, 1);
  return c.getImageData(0, 0, 1, 1).data;
}

function highest(values) {
  // The height of the tallest wave that is not an outlier: spikes are cut off, the rest stays visible.
  const sample = [];
  const step = Math.max(1, Math.floor(values.length / 4000));
  for (let k = 0; k < values.length; k += step) if (values[k] > 0) sample.push(values[k]);
  sample.sort((a, b) => a - b);
  return sample.length ? sample[Math.floor((sample.length - 1) * 0.98)] : 1;
}

function paint(data, palette) {
  const { bins } = data;
  const lanes = data.density_process.length;
  const image = new ImageData(bins, Math.max(1, lanes * HEIGHT));
  const wave = rgb(palette.wave), sender = rgb(palette.sender), receiver = rgb(palette.receiver);
  const most = highest(data.density);
  const held = Math.max(highest(data.held_sender), highest(data.held_receiver));
  const middle = HEIGHT / 2;
  const put = (x, y, colour, alpha) => {
    const at = 4 * (y * bins + x);
    image.data[at] = colour[0];
    image.data[at + 1] = colour[1];
    image.data[at + 2] = colour[2];
    image.data[at + 3] = alpha;
  };
  for (let lane = 0; lane < lanes; lane += 1) {
    const top = lane * HEIGHT;
    for (let x = 0; x < bins; x += 1) {
      const k = lane * bins + x;
      const events = Math.min(1, Math.sqrt(data.density[k] / most));
      const half = data.density[k] > 0 ? Math.max(1, Math.round(events * (middle - 5))) : 0;
      const up = Math.round(Math.min(1, data.held_sender[k] / held) * (middle - 1));
      const down = Math.round(Math.min(1, data.held_receiver[k] / held) * (middle - 1));
      for (let y = 0; y < up; y += 1) put(x, top + middle - 1 - y, sender, 190);
      for (let y = 0; y < down; y += 1) put(x, top + middle + y, receiver, 190);
      for (let y = 0; y < half; y += 1) {
        put(x, top + middle - 1 - y, wave, 120 + 110 * events);
        put(x, top + middle + y, wave, 120 + 110 * events);
      }
    }
  }
  const canvas = new OffscreenCanvas(bins, Math.max(1, lanes * HEIGHT));
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

export class Density {
  constructor() { this._bitmap = null; this._key = ""; }

  bitmap(data, palette) {
    const key = `${data.serial}|${palette.paper}`;
    if (key !== this._key) {
      this._bitmap = paint(data, palette);
      this._key = key;
    }
    return this._bitmap;
  }

  draw(c, scene, data) {
    const bitmap = this.bitmap(data, scene.palette);
    const left = scene.x(data.low), right = scene.x(data.high);
    const tall = Math.min(scene.lane, Math.max(scene.lane * 0.85, 6));
    c.imageSmoothingEnabled = false;
    c.globalAlpha = scene.selection ? 0.45 : 1;
    data.density_process.forEach((process, lane) => {
      const y = scene.y(process);
      if (y === null || y < -tall || y > scene.height + tall) return;
      c.drawImage(bitmap, 0, lane * HEIGHT, bitmap.width, HEIGHT, left, y - tall / 2, right - left, tall);
    });
    c.globalAlpha = 1;
  }
}
