// The colours of the diagram, which are those of the style sheet.

const NAMES = [
  "paper", "panel", "ink", "quiet", "line", "grid", "message", "sender", "receiver", "past", "future",
  "chosen", "violation", "control", "fault", "wave",
];

export function palette() {
  const style = getComputedStyle(document.documentElement);
  const result = {};
  for (const name of NAMES) result[name] = style.getPropertyValue(`--${name}`).trim();
  result.dark = style.getPropertyValue("--is-dark").trim() === "1";
  return result;
}
