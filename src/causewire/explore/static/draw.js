// Draws the diagram on anything that takes the calls of a canvas: a canvas, or svg.js.

import { CHOSEN, drawEvents, FUTURE, OUT, PAST } from "./marks.js";
import { ticks } from "./units.js";

export const TOP = 30;   // room for the axis
const NAMED = 18;        // pixels for each message in view that is named

// Where a copy stands to what is selected: its prefix and suffix of each process tell.
function standing(scene, from, sendPlace, to, deliverPlace, copy) {
  const s = scene.selection;
  if (!s) return PAST;
  if (copy === s.copy || scene.chain?.has(copy)) return CHOSEN;
  if (deliverPlace >= 0 && deliverPlace < s.past[to]) return PAST;
  if (sendPlace >= s.future[from]) return FUTURE;
  return OUT;
}

export function draw(c, scene) {
  const { width, height, gutter, palette: p } = scene;
  c.globalAlpha = 1;
  c.fillStyle = p.paper;
  c.fillRect(0, 0, width, height);
  drawGrid(c, scene);
  c.save();
  c.beginPath();
  c.rect(gutter, TOP, width - gutter, height - TOP);
  c.clip();
  drawLanes(c, scene);
  drawGroups(c, scene);
  drawFaults(c, scene);
  const data = scene.data;
  if (data) {
    if (data.exact) drawHolds(c, scene, data);
    else scene.drawDensity?.(c, scene, data);
    if (data.packet_sort) drawPackets(c, scene, data);
    drawArrows(c, scene, data);
    if (data.exact) drawEvents(c, scene, data);
  }
  drawWaits(c, scene);
  drawChosen(c, scene);
  drawCursor(c, scene);
  c.restore();
  drawNames(c, scene);
}

function drawGrid(c, scene) {
  const { width, height, gutter, view, palette: p, x } = scene;
  c.fillStyle = p.grid;
  const marks = ticks(view.low, view.high, width - gutter, 110, scene.timed);
  for (const mark of marks) {
    const at = Math.round(x(mark.x));
    if (at >= gutter) c.fillRect(at, TOP, 1, height - TOP);
  }
  c.fillStyle = p.quiet;
  c.font = scene.font(11);
  c.textAlign = "center";
  c.textBaseline = "middle";
  for (const mark of marks) {
    const at = x(mark.x);
    if (at > gutter + 18 && at < width - 24) c.fillText(mark.label, at, TOP / 2);
  }
  if (!scene.timed) {
    c.textAlign = "left";
    c.fillText("row", 10, TOP / 2);
  }
}

// A line and a name where a group of processes begins.
function drawGroups(c, scene) {
  const { palette: p, y, view, gutter, width, lane } = scene;
  let before;
  for (const process of view.lanes) {
    const group = view.groups.get(process);
    if (group === undefined || group === before) continue;
    const at = Math.round(y(process) - lane / 2) + 0.5;
    c.strokeStyle = p.quiet;
    c.lineWidth = 1;
    c.beginPath();
    if (before !== undefined) { c.moveTo(0, at); c.lineTo(width, at); }
    c.stroke();
    c.font = scene.font(10);
    c.fillStyle = p.quiet;
    c.textAlign = "left";
    c.textBaseline = "top";
    if (lane >= 22) c.fillText(group, gutter + 4, at + 2);
    before = group;
  }
}

function drawLanes(c, scene) {
  const { width, gutter, palette: p, y, view, x } = scene;
  const s = scene.selection;
  for (const process of view.lanes) {
    const at = Math.round(y(process)) + 0.5;
    if (at < TOP - 40 || at > scene.height + 40) continue;
    if (s) {
      const half = Math.min(scene.lane * 0.36, 14);
      const past = s.past_x[process], future = s.future_x[process];
      c.globalAlpha = p.dark ? 0.3 : 0.16;
      if (past !== null) {
        c.fillStyle = p.past;
        const from = Math.max(gutter, x(0));
        c.fillRect(from, at - half, Math.max(0, x(past) - from), 2 * half);
      }
      if (future !== null) {
        c.fillStyle = p.future;
        const from = Math.max(gutter, x(future));
        c.fillRect(from, at - half, Math.max(0, Math.min(width, x(view.end)) - from), 2 * half);
      }
      c.globalAlpha = 1;
    }
    c.fillStyle = p.line;
    c.fillRect(gutter, at - 0.5, width - gutter, 1);
  }
}

// Faults in force: a band over the line of each process that they concern, named once.
function drawFaults(c, scene) {
  const { palette: p, x, y, gutter, width, lane } = scene;
  const half = Math.min(lane * 0.42, 16);
  let named = "";
  for (const fault of scene.faults) {
    const at = y(fault.process);
    const from = Math.max(gutter, x(fault.low)), to = Math.min(width, x(fault.high));
    if (at === null || to < gutter || from > width) continue;
    c.globalAlpha = p.dark ? 0.4 : 0.22;
    c.fillStyle = p.fault;
    c.fillRect(from, at - half, Math.max(2, to - from), 2 * half);
    c.globalAlpha = 1;
    c.font = scene.font(11, true);
    const words = fault.kind.replaceAll("_", " ");
    if (`${words}${fault.low}` === named || c.measureText(words).width > to - from - 8 || lane < 26) continue;
    named = `${words}${fault.low}`;
    c.textAlign = "left";
    c.textBaseline = "bottom";
    c.fillText(words, from + 4, at - half - 1);
  }
}

// Times that messages spend in a send buffer (above the line) or a receive buffer (below it).
function drawHolds(c, scene, data) {
  const { palette: p, x, y, lane } = scene;
  const thick = Math.min(7, lane * 0.2);
  for (const [begin, end, process, colour, above] of [
    [data.copy_send, data.copy_release, data.copy_from, p.sender, true],
    [data.copy_receive, data.copy_deliver, data.copy_to, p.receiver, false],
  ]) {
    c.fillStyle = colour;
    for (let k = 0; k < data.copy.length; k += 1) {
      let to = end[k];
      if (Number.isNaN(begin[k])) continue;
      if (Number.isNaN(to)) {
        const gone = above && (!Number.isNaN(data.copy_receive[k]) || !Number.isNaN(data.copy_deliver[k]) || !scene.releases);
        if (gone) continue;
        to = scene.view.end;
      }
      const a = x(begin[k]), b = x(to);
      const at = y(process[k]);
      if (b - a < 0.7 || at === null || b < scene.gutter || a > scene.width) continue;
      const stand = standing(scene, data.copy_from[k], data.copy_send_place[k], data.copy_to[k], data.copy_deliver_place[k], data.copy[k]);
      c.globalAlpha = scene.selection ? (stand === CHOSEN ? 1 : stand === OUT ? 0.08 : 0.45) : 0.5;
      c.fillRect(a, above ? at - thick - 1 : at + 1, b - a, thick);
    }
  }
  c.globalAlpha = 1;
}

function ends(scene, data, k) {
  const { x, y } = scene;
  const left = Number.isNaN(data.copy_release[k]) ? data.copy_send[k] : data.copy_release[k];
  let came = Number.isNaN(data.copy_receive[k]) ? data.copy_deliver[k] : data.copy_receive[k];
  const lost = Number.isNaN(came);
  if (lost) came = left;
  return [x(left), y(data.copy_from[k]), x(came), y(data.copy_to[k]), lost];
}

export function arrowEnds(scene, data, k) {
  let [x1, y1, x2, y2, lost] = ends(scene, data, k);
  if (y1 === null && y2 === null) return null;
  const reach = scene.lane * 0.4;
  const down = data.copy_to[k] > data.copy_from[k] ? 1 : -1;
  if (lost && y1 === null) return null;
  if (lost) { x2 = x1 + 16; y2 = y1 + (y2 === null ? down : Math.sign(y2 - y1) || 1) * reach; }
  else if (y1 === null) { y1 = y2 - down * reach; x1 = x2 - Math.min(reach, x2 - x1); }
  else if (y2 === null) { y2 = y1 + down * reach; x2 = x1 + Math.min(reach, x2 - x1); }
  return [x1, y1, x2, y2, lost];
}

function drawArrows(c, scene, data) {
  const { palette: p, width, gutter } = scene;
  const some = data.drawn < data.messages;
  const groups = [[], [], [], []];
  for (let k = 0; k < data.copy.length; k += 1) {
    const at = arrowEnds(scene, data, k);
    if (!at || Math.max(at[0], at[2]) < gutter || Math.min(at[0], at[2]) > width) continue;
    const stand = standing(scene, data.copy_from[k], data.copy_send_place[k], data.copy_to[k], data.copy_deliver_place[k], data.copy[k]);
    at.push(k);
    groups[stand].push(at);
  }
  const inView = groups.reduce((sum, group) => sum + group.length, 0);
  const heads = inView < 400;
  const faint = some ? 0.2 : Math.min(0.8, Math.max(0.16, 260 / Math.max(1, inView)));
  const none = !scene.selection;
  // Lines of one pixel of the screen are drawn many times faster than any others.
  const thin = inView > 400 ? 1 / scene.ratio : 1;
  drawGroup(c, groups[OUT], p.message, none ? faint : faint * 0.22, thin, heads && none);
  drawGroup(c, groups[PAST], none ? p.message : p.past, none ? faint : Math.min(0.9, faint * 1.5), thin, heads);
  drawGroup(c, groups[FUTURE], p.future, Math.min(0.9, faint * 1.5), thin, heads);
  drawGroup(c, groups[CHOSEN], p.chosen, 1, 2.6, true);
  c.globalAlpha = 1;
  if (!data.exact) return;
  const named = none ? inView : inView - groups[OUT].length;
  const all = inView <= 60 && (width - gutter) / Math.max(1, named) >= NAMED;
  if (all) drawLabels(c, scene, data, groups, none ? [PAST, OUT] : [CHOSEN, PAST, FUTURE]);
  else if (groups[CHOSEN].length < 10) drawLabels(c, scene, data, groups, [CHOSEN]);
}

// Acks are dotted, permits dashed, other control packets both.
function drawPackets(c, scene, data) {
  const { x, y, palette: p, width, gutter } = scene;
  const styles = [[p.control, [1.5, 3]], [p.future, [6, 3]], [p.fault, [6, 2, 1.5, 2]]];
  styles.forEach(([colour, dash], sort) => {
    const arrows = [];
    for (let k = 0; k < data.packet_sort.length; k += 1) {
      if (data.packet_sort[k] !== sort) continue;
      const [x1, y1, x2, y2] = [x(data.packet_send[k]), y(data.packet_from[k]), x(data.packet_receive[k]), y(data.packet_to[k])];
      if (y1 !== null && y2 !== null && x2 > gutter && x1 < width) arrows.push([x1, y1, x2, y2, false]);
    }
    c.setLineDash(arrows.length > 1000 ? [] : dash);
    drawGroup(c, arrows, colour, scene.selection ? 0.25 : 0.7, 1, arrows.length < 300);
  });
  c.setLineDash([]);
  c.globalAlpha = 1;
}

function drawGroup(c, arrows, colour, alpha, thick, heads) {
  if (!arrows.length) return;
  c.globalAlpha = alpha;
  c.strokeStyle = colour;
  c.fillStyle = colour;
  c.lineWidth = thick;
  c.beginPath();
  for (const [x1, y1, x2, y2] of arrows) {
    c.moveTo(x1, y1);
    c.lineTo(x2, y2);
  }
  c.stroke();
  if (!heads) return;
  c.beginPath();
  const size = 4 + 1.5 * thick;
  for (const [x1, y1, x2, y2, lost] of arrows) {
    const dx = x2 - x1, dy = y2 - y1;
    const length = Math.hypot(dx, dy);
    if (length < 12) continue;
    const ux = dx / length, uy = dy / length;
    if (lost) {
      for (const sign of [1, -1]) {
        c.moveTo(x2 - 4, y2 - 4 * sign);
        c.lineTo(x2 + 4, y2 + 4 * sign);
        c.lineTo(x2 + 3, y2 + 4 * sign);
        c.lineTo(x2 - 5, y2 - 4 * sign);
      }
      continue;
    }
    const tx = x2 - 4 * ux, ty = y2 - 4 * uy;
    c.moveTo(tx, ty);
    c.lineTo(tx - size * ux - size * 0.42 * uy, ty - size * uy + size * 0.42 * ux);
    c.lineTo(tx - size * ux + size * 0.42 * uy, ty - size * uy - size * 0.42 * ux);
    c.closePath();
  }
  c.fill();
}

function drawLabels(c, scene, data, groups, which) {
  c.font = scene.font(11);
  c.textAlign = "center";
  c.textBaseline = "middle";
  const { palette: p } = scene;
  const taken = [];
  const lines = scene.view.lanes.map((process) => scene.y(process));
  for (const group of which) {
    for (const [x1, y1, x2, y2, , k] of groups[group]) {
      if (Math.abs(y2 - y1) < 26 && Math.abs(x2 - x1) < 60) continue;
      const text = scene.names[data.copy_from[k]].length > 14 ? "" : `${scene.names[data.copy_from[k]]}:${data.copy_mid[k]}`;
      if (!text) continue;
      const wide = c.measureText(text).width / 2 + 4;
      const at = [0.5, 0.38, 0.62, 0.26, 0.74].map((t) => [x1 + t * (x2 - x1), y1 + t * (y2 - y1)])
        .find(([a, b]) => lines.every((line) => Math.abs(line - b) > 12)
          && taken.every(([c1, d, w]) => Math.abs(c1 - a) >= w + wide || Math.abs(d - b) >= 14));
      if (!at || at[0] < scene.gutter + wide) continue;
      taken.push([...at, wide]);
      c.globalAlpha = 0.85;
      c.fillStyle = p.paper;
      c.fillRect(at[0] - wide, at[1] - 7, 2 * wide, 14);
      c.globalAlpha = 1;
      c.fillStyle = group === CHOSEN ? p.chosen : p.ink;
      c.fillText(text, ...at);
    }
  }
}

// What held the selected message back: where it waited, and what ended the wait.
function drawWaits(c, scene) {
  const { palette: p, x, y, lane } = scene;
  for (const wait of scene.selection?.waits ?? []) {
    const at = y(wait.process);
    if (at === null) continue;
    const colour = wait.held_at === "sender" ? p.sender : p.receiver;
    const thick = Math.min(9, lane * 0.26);
    c.globalAlpha = 1;
    c.fillStyle = colour;
    c.fillRect(x(wait.from), wait.held_at === "sender" ? at - thick - 1 : at + 1, Math.max(2, x(wait.to) - x(wait.from)), thick);
    const legs = wait.legs.map((leg) => [x(leg.send), y(leg.from), x(leg.deliver), y(leg.to), false]).filter((leg) => leg[1] !== null && leg[3] !== null);
    c.setLineDash([6, 3]);
    drawGroup(c, legs, colour, 1, 1.8, true);
    c.setLineDash([]);
    if (wait.cause !== null && y(wait.cause_process) !== null) {
      c.strokeStyle = colour;
      c.lineWidth = 2.5;
      c.beginPath();
      c.arc(x(wait.cause_x), y(wait.cause_process), 8, 0, 7);
      c.stroke();
    }
  }
}

function drawChosen(c, scene) {
  const { palette: p, x, y } = scene;
  for (const [mark, colour] of [[scene.second, p.violation], [scene.selection, p.chosen]]) {
    const at = mark && y(mark.process);
    if (!mark || at === null) continue;
    c.strokeStyle = colour;
    c.lineWidth = 2.5;
    c.beginPath();
    c.arc(x(mark.x), at, 7.5, 0, 7);
    c.stroke();
  }
  if (!scene.arrows?.length) return;
  drawGroup(
    c,
    scene.arrows.map((a) => [x(a.send), y(a.from) ?? 0, x(a.deliver), y(a.to) ?? 0, false]).filter((a) => a[1] && a[3]),
    p.violation, 1, 2.4, true,
  );
}

function drawCursor(c, scene) {
  if (scene.step === null || scene.step === undefined) return;
  const { palette: p, x, height, width } = scene;
  const now = x(scene.step.x);
  c.globalAlpha = 0.72;   // what has not happened yet recedes
  c.fillStyle = p.paper;
  c.fillRect(now + 7, TOP, Math.max(0, width - now - 7), height - TOP);
  c.globalAlpha = 1;
  c.strokeStyle = p.chosen;
  c.lineWidth = 1.5;
  c.setLineDash([5, 4]);
  c.beginPath();
  c.moveTo(now, TOP);
  c.lineTo(now, height);
  c.stroke();
  c.setLineDash([]);
  const at = scene.y(scene.step.process);
  if (at === null) return;
  c.lineWidth = 2.5;
  c.beginPath();
  c.arc(now, at, 8, 0, 7);
  c.stroke();
}

function drawNames(c, scene) {
  const { palette: p, gutter, y, height, view, lane } = scene;
  c.fillStyle = p.panel;
  c.fillRect(0, TOP, gutter, height - TOP);
  c.textBaseline = "middle";
  c.textAlign = "right";
  const small = lane < 14;
  let last = -100;
  for (const process of view.lanes) {
    const at = y(process);
    if (at < TOP - 8 || at > height + 8 || at - last < 10) continue;
    last = at;
    const chosen = process === scene.selection?.process || process === scene.lane_focus;
    c.font = scene.font(small ? 10 : 12, true);
    c.fillStyle = chosen ? p.chosen : p.ink;
    c.fillText(scene.fitted(c, scene.names[process], gutter - 14), gutter - 8, at);
    const state = scene.step?.state?.[process];
    if (state && lane >= 30) {
      c.font = scene.font(10);
      c.fillStyle = p.quiet;
      c.fillText(scene.fitted(c, stateWords(state), gutter - 14), gutter - 8, at + 13);
    }
  }
  c.fillStyle = p.paper;
  c.fillRect(0, 0, gutter, TOP);
}

function stateWords(state) {
  const words = [];
  if (state.unsent.length) words.push(`holds ${state.unsent.join(" ")}`);
  if (state.held.length) words.push(`keeps ${state.held.join(" ")}`);
  return words.join(", ");
}
