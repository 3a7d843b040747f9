// What is on screen as a file: SVG, PNG, or the smallest trace that shows it.

import { blob } from "./api.js";
import { draw } from "./draw.js";
import { SvgContext } from "./svg.js";

function save(content, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function svgOf(diagram, title) {
  const scene = { ...diagram.scene(), stamps: null };   // circles, not bitmaps
  const context = new SvgContext(scene.width, scene.height);
  draw(context, scene);
  return context.text(title);
}

export function exportSvg(diagram, title) {
  save(new Blob([svgOf(diagram, title)], { type: "image/svg+xml" }), "causewire.svg");
}

export function exportPng(diagram) {
  const scene = { ...diagram.scene(), ratio: 2 };
  const canvas = document.createElement("canvas");
  canvas.width = scene.width * scene.ratio;
  canvas.height = scene.height * scene.ratio;
  const c = canvas.getContext("2d");
  c.scale(scene.ratio, scene.ratio);
  draw(c, scene);
  canvas.toBlob((content) => save(content, "causewire.png"), "image/png");
}

export async function exportTrace(app) {
  const { view } = app;
  const all = view.lanes.length === app.info.processes.length;
  const content = await blob("extract", {
    ...app.where, low: view.low, high: view.high, lanes: all ? null : [...view.lanes].sort((a, b) => a - b).join(","),
    fastest: view.fastest, slowest: view.slowest, copies: app.essential().join(",") || null,
  });
  save(content, "causewire-smallest.jsonl");
}
