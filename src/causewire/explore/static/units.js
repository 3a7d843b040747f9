// Times and counts in words, and where to put the ticks of an axis.

const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

export function duration(ns, digits = 3) {
  const size = Math.abs(ns);
  for (const [unit, name] of UNITS) {
    if (size >= unit) {
      const value = ns / unit;
      const text = Math.abs(value) >= 999.5 ? value.toFixed(0) : value.toPrecision(digits);
      return `${text.includes("e") ? Number(text) : text.replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "")} ${name}`;
    }
  }
  return "0 s";
}

export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

// How far the reading of a trace is, and when it will be done.
export function readSoFar({ rows, total, seconds }) {
  if (!total || !rows) return `Reading the trace: ${count(rows, "row")} so far …`;
  const share = Math.min(1, rows / total);
  if (share >= 1) return `Putting ${count(rows, "row")} in order …`;
  const left = seconds < 2 ? "" : `, about ${count(Math.ceil(seconds * (1 - share) / share), "second")} left`;
  return `Reading the trace: ${count(rows, "row")}, ${Math.floor(100 * share)} %${left}`;
}

// Round places between low and high, about one for each `pixels` of the width.
export function ticks(low, high, width, pixels, timed) {
  const rough = (high - low) / Math.max(1, width / pixels);
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  if (!timed) step = Math.max(1, step);
  const largest = Math.max(Math.abs(low), Math.abs(high));
  // The unit of the largest number, unless that would need too many decimals.
  const [unit, name] = timed
    ? UNITS.find(([size]) => largest >= size && step / size >= 1e-6) ?? [1, "ns"] : [1, ""];
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
  const result = [];
  for (let k = Math.max(0, Math.ceil(low / step)); k * step <= high; k += 1) {
    const label = `${(k * step / unit).toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals })}${name ? ` ${name}` : ""}`;
    result.push({ x: k * step, label });
  }
  return result;
}
