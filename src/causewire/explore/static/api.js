// Questions to the server. Addresses are relative, so each of them has the token of the page.

export const recorded = false;   // saved pages have recorded.js in place of this module

export class ApiError extends Error {
  constructor(message, wait) {
    super(message);
    this.wait = wait;
  }
}

function address(name, query) {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== null && value !== undefined) params.set(key, value);
  }
  return `api/${name}?${params}`;
}

async function asked(name, query, options) {
  const response = await fetch(address(name, query), options);
  if (response.ok) return response;
  let reason = { error: `the server answered ${response.status}` };
  try { reason = await response.json(); } catch { /* not JSON: keep the status */ }
  throw new ApiError(reason.error, reason.wait === true);
}

export async function ask(name, query = {}, options = {}) {
  return (await asked(name, query, options)).json();
}

export async function post(name, query = {}) {
  return (await asked(name, query, { method: "POST" })).json();
}

export async function blob(name, query = {}) {
  return (await asked(name, query, {})).blob();
}

const TYPES = {
  f8: Float64Array, f4: Float32Array, u4: Uint32Array, i4: Int32Array, u2: Uint16Array, u1: Uint8Array,
};

// Facts and arrays, as packing.py writes them; the arrays are views of the answer itself.
export async function arrays(name, query = {}, options = {}) {
  const buffer = await (await asked(name, query, options)).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const result = { ...header.facts };
  for (const [key, type, offset, count] of header.arrays) {
    result[key] = new TYPES[type](buffer, 4 + length + offset, count);
  }
  return result;
}
