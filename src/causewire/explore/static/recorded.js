// Stands for api.js on a saved page: answers come from the page itself, and no server is asked.

export const recorded = true;

export class ApiError extends Error {}

const data = JSON.parse(document.getElementById("recorded").textContent);

// Which values of a query make a difference to the answer, besides data set and run.
const KEYS = { select: ["row", "copy"], tell: ["row", "copy"], step: ["row"], same: ["copy"] };

const TYPES = { f8: Float64Array, f4: Float32Array, u4: Uint32Array, i4: Int32Array, u2: Uint16Array, u1: Uint8Array };

function recall(name, query) {
  const values = (KEYS[name] ?? []).map((key) => query[key] ?? "");
  const key = name === "status" ? "status" : [name, query.d ?? 0, query.run ?? 0, ...values].join("|");
  const answer = data[key];
  if (answer === undefined) throw new ApiError("a saved page does not know that");
  return answer;
}

export async function ask(name, query = {}) {
  if (name === "relate") return relate(query);
  if (name === "near") return near(query);
  if (name === "find") return find(query);
  if (name === "step") query = { ...query, row: Math.min(Math.max(0, query.row), recall("run", query).rows - 1) };
  return recall(name, query);
}

export async function post() { throw new ApiError("a saved page cannot replay"); }
export const blob = post;

const unpacked = new Map();

export async function arrays(name, query = {}) {
  const { facts, arrays: packed } = recall(name, query);
  const key = `${name}|${query.d ?? 0}|${query.run ?? 0}`;
  if (!unpacked.has(key)) {
    const result = {};
    for (const [field, [type, values]] of Object.entries(packed)) {
      result[field] = TYPES[type].from(values, (value) => (value === null ? NaN : value));
    }
    unpacked.set(key, result);
  }
  const all = { ...unpacked.get(key) };
  if (name === "window" && !query.control) delete all.packet_sort;
  if (name !== "window" || (query.fastest ?? null) === null) return { ...facts, ...all };
  const kept = [];
  all.copy.forEach((_, k) => {
    const took = all.copy_deliver[k] - all.copy_send[k];
    if (took >= query.fastest && took <= query.slowest) kept.push(k);
  });
  const result = { ...facts, ...all, messages: kept.length, drawn: kept.length };
  for (const field of Object.keys(all)) {
    if (field.startsWith("copy")) result[field] = all[field].constructor.from(kept, (k) => all[field][k]);
  }
  return result;
}

// -- what the server would work out ----------------------------------------------------------

const event = (w, row) => {
  const k = w.event_row.indexOf(row);
  return { k, row, process: w.event_process[k], place: w.event_place[k], x: w.event_x[k], copy: w.event_copy[k] };
};

async function near(query) {
  const w = await arrays("window", query);
  const rows = [];
  const process = query.row === undefined || query.row === null ? query.process : event(w, query.row).process;
  w.event_process.forEach((p, k) => { if (p === process) rows.push(event(w, w.event_row[k])); });
  rows.sort((a, b) => a.place - b.place);
  if (!rows.length) throw new ApiError("nothing happened there");
  if (query.row !== undefined && query.row !== null) {
    const at = rows.findIndex((each) => each.row === query.row) + query.by;
    return rows[Math.min(rows.length - 1, Math.max(0, at))];
  }
  return rows.reduce((best, each) => (Math.abs(each.x - query.x) < Math.abs(best.x - query.x) ? each : best));
}

async function find(query) {
  const w = await arrays("window", query);
  const { processes } = recall("run", query);
  const at = query.q.lastIndexOf(":");
  const origin = processes.indexOf(query.q.slice(0, at).trim()), mid = Number(query.q.slice(at + 1));
  const k = w.copy.findIndex((_, n) => w.copy_from[n] === origin && w.copy_mid[n] === mid);
  if (k < 0) throw new ApiError(`there is no message ${query.q} in this run`);
  return { copy: w.copy[k], x: w.copy_send[k] };
}

// A shortest chain of messages from one event to another: by one message more in each round.
function chain(w, a, b) {
  const first = new Map([[a.process, { place: a.place, via: null }]]);
  for (let grown = true; grown;) {
    if ((first.get(b.process)?.place ?? Infinity) <= b.place) break;
    grown = false;
    const reached = [];
    w.copy.forEach((copy, k) => {
      const from = first.get(w.copy_from[k]);
      if (!from || w.copy_send_place[k] < from.place || w.copy_deliver_place[k] < 0) return;
      reached.push([w.copy_to[k], { place: w.copy_deliver_place[k], via: { k, from } }]);
    });
    for (const [process, found] of reached) {
      if (found.place < (first.get(process)?.place ?? Infinity)) { first.set(process, found); grown = true; }
    }
  }
  const hops = [];
  for (let at = first.get(b.process); at.via; at = at.via.from) hops.unshift(at.via.k);
  return hops;
}

async function relate(query) {
  const w = await arrays("window", query);
  const { processes } = recall("run", query);
  let [a, b] = [event(w, query.a), event(w, query.b)];
  if (a.row === b.row) return { relation: "same", words: "This is the same event.", chain: [] };
  const before = (c, d) => c.place < recall("select", { ...query, row: d.row, copy: d.copy }).past[c.process];
  const swapped = !before(a, b);
  if (swapped) [a, b] = [b, a];
  const words = (each) => recall("tell", { ...query, row: each.row, copy: each.copy }).words;
  if (!before(a, b)) {
    return { relation: "concurrent", words: `The two are concurrent: no chain of messages leads from “${words(a)}” to “${words(b)}”, or back.`, chain: [] };
  }
  const hops = chain(w, a, b);
  const name = (k) => `${processes[w.copy_from[k]]}:${w.copy_mid[k]}`;
  const steps = hops.map((k) => `${processes[w.copy_from[k]]} sent ${name(k)}, and ${processes[w.copy_to[k]]} delivered it`).join("; then ");
  return {
    relation: swapped ? "after" : "before",
    words: `“${words(a)}” happened before “${words(b)}”. ${hops.length ? `The chain: ${steps}.` : "Both happened at one process, in this order."}`,
    chain: hops.map((k) => ({ copy: w.copy[k], message: name(k), from: w.copy_from[k], to: w.copy_to[k], send: w.copy_send[k], deliver: w.copy_deliver[k] })),
  };
}
