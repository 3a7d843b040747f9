// A canvas context that writes SVG: as much of one as draw.js uses.

const escaped = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const n = (value) => Number(value.toFixed(1));

export class SvgContext {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.parts = [];
    this.path = "";
    this.dash = [];
    this.groups = 0;
    this.clips = 0;
    Object.assign(this, { globalAlpha: 1, fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, font: "12px sans-serif", textAlign: "left", textBaseline: "alphabetic" });
    this._measure = new OffscreenCanvas(1, 1).getContext("2d");
  }

  save() { this.groups += 1; this.parts.push("<g>"); }
  restore() { this.groups -= 1; this.parts.push("</g>"); }
  clip() {
    const id = `clip${(this.clips += 1)}`;
    this.parts.push(`<clipPath id="${id}"><path d="${this.path}"/></clipPath></g><g clip-path="url(#${id})">`);
  }
  beginPath() { this.path = ""; }
  moveTo(x, y) { this.path += `M${n(x)} ${n(y)}`; }
  lineTo(x, y) { this.path += `L${n(x)} ${n(y)}`; }
  closePath() { this.path += "z"; }
  rect(x, y, w, h) { this.path += `M${n(x)} ${n(y)}h${n(w)}v${n(h)}h${n(-w)}z`; }
  arc(x, y, r) { this.path += `M${n(x + r)} ${n(y)}A${n(r)} ${n(r)} 0 1 1 ${n(x - r)} ${n(y)}A${n(r)} ${n(r)} 0 1 1 ${n(x + r)} ${n(y)}`; }
  setLineDash(dash) { this.dash = dash; }
  stroke() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    if (this.path) this.parts.push(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${n(this.lineWidth)}"${dash}${this._alpha()}/>`);
  }
  fill() { if (this.path) this.parts.push(`<path d="${this.path}" fill="${this.fillStyle}"${this._alpha()}/>`); }
  fillRect(x, y, w, h) { this.parts.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(Math.max(0, w))}" height="${n(Math.max(0, h))}" fill="${this.fillStyle}"${this._alpha()}/>`); }
  strokeRect(x, y, w, h) { this.beginPath(); this.rect(x, y, w, h); this.stroke(); }
  fillText(text, x, y) {
    const anchor = { left: "start", center: "middle", right: "end" }[this.textAlign];
    const shift = { middle: 0.35, top: 0.8, bottom: -0.2 }[this.textBaseline] ?? 0;
    const [, bold, size] = /^(600 )?([\d.]+)px/.exec(this.font);
    this.parts.push(`<text x="${n(x)}" y="${n(y + shift * size)}" font-size="${size}"${bold ? ' font-weight="600"' : ""} text-anchor="${anchor}" fill="${this.fillStyle}"${this._alpha()}>${escaped(text)}</text>`);
  }
  measureText(text) { this._measure.font = this.font; return this._measure.measureText(text); }
  drawImage(image, sx, sy, sw, sh, x, y, w, h) {
    const canvas = document.createElement("canvas");
    canvas.width = sw;
    canvas.height = sh;
    canvas.getContext("2d").drawImage(image, sx, sy, sw, sh, 0, 0, sw, sh);
    this.parts.push(`<image x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${canvas.toDataURL()}"${this._alpha()}/>`);
  }
  _alpha() { return this.globalAlpha < 1 ? ` opacity="${Number(this.globalAlpha.toFixed(2))}"` : ""; }

  text(title) {
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${this.width} ${this.height}" width="${this.width}" height="${this.height}" font-family="system-ui, 'Segoe UI', 'Liberation Sans', sans-serif"><title>${escaped(title)}</title>\n${this.parts.join("\n")}\n</svg>\n`;
  }
}
