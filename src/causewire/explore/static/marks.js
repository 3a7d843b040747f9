// Draws events on the lines of their processes: rings for sends, squares for deliveries, ticks where they crowd.

// Marks, as window.py numbers them.
const SEND = 0, RELEASE = 1, RECEIVE = 2, DELIVER = 3, CONTROL = 4, CONTROL_IN = 5, FAULT = 6, DROP = 8;

// Where something stands to what is selected.
export const OUT = 0;
export const PAST = 1;
export const FUTURE = 2;
export const CHOSEN = 3;

const MOST_FINE = 1500;   // more marks than this on screen are ticks

function eventStanding(scene, process, place, row) {
  const s = scene.selection;
  if (!s) return PAST;
  if (row === s.row) return CHOSEN;
  if (place < s.past[process]) return PAST;
  if (place >= s.future[process]) return FUTURE;
  return OUT;
}

export function drawEvents(c, scene, data) {
  const { palette: p, x, y, gutter, width, lane } = scene;
  const n = data.event_x.length;
  const perLane = n / Math.max(1, scene.view.lanes.length) / Math.max(1, (data.high - data.low) / scene.view.width);
  const room = (width - gutter) / Math.max(1, perLane);
  const size = Math.max(1.1, Math.round(4 * Math.min(4.25, room * 0.55, lane * 0.16)) / 4);
  const framed = data.event_mark.includes(RECEIVE);   // otherwise a delivery stands alone
  const groups = new Map();
  let shown = 0;
  for (let k = 0; k < n; k += 1) {
    const at = x(data.event_x[k]);
    if (at < gutter - 5 || at > width + 5) continue;
    const line = y(data.event_process[k]);
    if (line === null) continue;
    const stand = eventStanding(scene, data.event_process[k], data.event_place[k], data.event_row[k]);
    const key = stand * 16 + data.event_mark[k];
    let group = groups.get(key);
    if (!group) groups.set(key, group = []);
    group.push(at, line);
    shown += 1;
  }
  const fine = size >= 2.4 && shown < MOST_FINE;
  const colours = [p.quiet, scene.selection ? p.past : p.ink, p.future, p.chosen];
  for (const [key, places] of [...groups].sort((a, b) => a[0] - b[0])) {
    const mark = key & 15, stand = key >> 4;
    c.globalAlpha = stand === OUT ? 0.35 : 1;
    if (mark === FAULT) drawBars(c, places, 4, 7, 7, p.fault);
    else if (mark === DROP) drawCrosses(c, places, colours[stand]);
    else if (fine) drawMark(c, scene, mark, places, size, framed, colours[stand]);
    else if (mark !== CONTROL && mark !== CONTROL_IN) drawBars(c, places, Math.min(size, 2), Math.min(size, 3), Math.min(size, 3), colours[stand]);
  }
  c.globalAlpha = 1;
}

function drawMark(c, scene, mark, places, size, framed, colour) {
  const { paper, control } = scene.palette;
  const half = size * 0.92;
  const inner = framed ? half * 0.5 : half * 0.85;
  if (mark === SEND) drawDiscs(c, scene, places, size, paper, colour);
  else if (mark === RELEASE) drawDiscs(c, scene, places, size * 0.45, colour, null);
  else if (mark === RECEIVE) drawFrames(c, places, half, paper, colour);
  else if (mark === DELIVER) drawBars(c, places, 2 * inner, inner, inner, colour);
  else if (mark === CONTROL) drawBars(c, places, 1.2, 3.5, 0, control);
  else if (mark === CONTROL_IN) drawBars(c, places, 1.2, 0, 3.5, control);
  else drawBars(c, places, size, size, size, colour);
}

function drawDiscs(c, scene, places, radius, inside, ring) {
  const { stamps, ratio } = scene;
  if (stamps) {
    const { canvas, half } = stamps.disc(radius, inside, ring, ratio);
    for (let k = 0; k < places.length; k += 2) {
      const at = (Math.floor(places[k] * ratio) + 0.5) / ratio, line = (Math.round(places[k + 1] * ratio) + 0.5) / ratio;
      c.drawImage(canvas, at - half, line - half, 2 * half, 2 * half);
    }
    return;
  }
  c.fillStyle = inside;
  c.strokeStyle = ring;
  c.lineWidth = 1.3;
  c.beginPath();
  for (let k = 0; k < places.length; k += 2) {
    c.moveTo(places[k] + radius, places[k + 1]);
    c.arc(places[k], places[k + 1], radius, 0, 7);
  }
  c.fill();
  if (ring) c.stroke();
}

// Single rectangles are drawn faster than one path of many.
function drawBars(c, places, wide, above, below, colour) {
  c.fillStyle = colour;
  for (let k = 0; k < places.length; k += 2) c.fillRect(places[k] - wide / 2, places[k + 1] - above, wide, above + below);
}

function drawFrames(c, places, half, inside, frame) {
  c.fillStyle = inside;
  c.strokeStyle = frame;
  c.lineWidth = 1.3;
  for (let k = 0; k < places.length; k += 2) {
    const at = places[k] - half, line = places[k + 1] - half;
    c.fillRect(at, line, 2 * half, 2 * half);
    c.strokeRect(at, line, 2 * half, 2 * half);
  }
}

function drawCrosses(c, places, colour) {
  c.strokeStyle = colour;
  c.lineWidth = 1.3;
  c.beginPath();
  for (let k = 0; k < places.length; k += 2) {
    const at = places[k], line = places[k + 1];
    c.moveTo(at - 3, line - 3);
    c.lineTo(at + 3, line + 3);
    c.moveTo(at - 3, line + 3);
    c.lineTo(at + 3, line - 3);
  }
  c.stroke();
}
