// Wheel, pointer, pinch and keys: how one moves through a diagram.

const share = (scene, px) => Math.max(0, px - scene.gutter) / (scene.width - scene.gutter);

export function listen(app, diagram) {
  const { canvas } = diagram;
  const { view } = app;
  const pointers = new Map();
  let moved = 0;
  let spread = 0;

  const local = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const scene = diagram.scene();
    const [px] = local(event);
    const lines = event.deltaMode === 1 ? 16 : 1;
    if (event.altKey) {
      view.tall = Math.min(8, Math.max(0.25, view.tall * Math.exp(-event.deltaY * lines / 400)));
      view.changed();
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const delta = (event.deltaX || event.deltaY) * lines;
      view.pan(delta / (scene.width - scene.gutter));
    } else {
      view.zoomAt(Math.exp(-event.deltaY * lines / (event.ctrlKey ? 120 : 400)), share(scene, px));
    }
  }, { passive: false });

  canvas.addEventListener("pointerdown", (event) => {
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, local(event));
    moved = pointers.size > 1 ? 100 : 0;
    spread = 0;
  });

  canvas.addEventListener("pointermove", (event) => {
    const at = local(event);
    const before = pointers.get(event.pointerId);
    if (!before) {
      app.hover(diagram, at, event);
      return;
    }
    const scene = diagram.scene();
    pointers.set(event.pointerId, at);
    const wide = scene.width - scene.gutter;
    if (pointers.size === 1) {
      const dx = at[0] - before[0], dy = at[1] - before[1];
      moved += Math.abs(dx) + Math.abs(dy);
      if (moved < 5) return;
      canvas.classList.add("dragging");
      view.scroll -= dy;
      view.pan(-dx / wide);
    } else {
      const [a, b] = [...pointers.values()];
      const wider = Math.hypot(a[0] - b[0], a[1] - b[1]);
      if (spread) view.zoomAt(wider / spread, share(scene, (a[0] + b[0]) / 2));
      spread = wider;
    }
    app.unhover();
  });

  const ended = (event) => {
    const at = pointers.get(event.pointerId);
    pointers.delete(event.pointerId);
    canvas.classList.remove("dragging");
    spread = 0;
    if (!at || event.type === "pointercancel" || moved >= 5) return;
    const found = diagram.at(...at, event.pointerType === "touch");
    if (found) app.choose(diagram, found, event.shiftKey || app.pairing);
    else if (!event.shiftKey) app.clear();
  };
  canvas.addEventListener("pointerup", ended);
  canvas.addEventListener("pointercancel", ended);
  canvas.addEventListener("pointerleave", () => app.unhover());
  canvas.addEventListener("dblclick", (event) => {
    view.zoomAt(3, share(diagram.scene(), local(event)[0]));
  });
  canvas.addEventListener("focus", () => diagram.redraw());
  canvas.addEventListener("blur", () => diagram.redraw());
  canvas.addEventListener("keydown", (event) => {
    const action = KEYS.find((key) => key.keys.includes(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey);
    if (!action) return;
    event.preventDefault();
    action.run(app, diagram, event);
  });
}

export const KEYS = [
  { keys: ["ArrowLeft"], shown: "←", words: "move left (Shift: a whole screen)", run: (app, d, e) => app.view.pan(e.shiftKey ? -0.9 : -0.12) },
  { keys: ["ArrowRight"], shown: "→", words: "move right", run: (app, d, e) => app.view.pan(e.shiftKey ? 0.9 : 0.12) },
  { keys: ["+", "="], shown: "+", words: "zoom in", run: (app) => app.view.zoom(1.5, app.about()) },
  { keys: ["-", "_"], shown: "−", words: "zoom out", run: (app) => app.view.zoom(1 / 1.5, app.about()) },
  { keys: ["0", "Home"], shown: "0", words: "show the whole run", run: (app) => app.view.fit() },
  { keys: ["ArrowUp"], shown: "↑", words: "go to the process above", run: (app, d) => app.moveFocus(d, -1) },
  { keys: ["ArrowDown"], shown: "↓", words: "go to the process below", run: (app, d) => app.moveFocus(d, 1) },
  { keys: [".", "n"], shown: ".", words: "select the next event of this process", run: (app, d) => app.walk(d, 1) },
  { keys: [",", "p"], shown: ",", words: "select the previous event of this process", run: (app, d) => app.walk(d, -1) },
  { keys: ["m"], shown: "m", words: "mark the selected event; then select another one to compare the two", run: (app) => app.mark() },
  { keys: ["v"], shown: "v", words: "go to the next violation", run: (app) => app.nextViolation(1) },
  { keys: ["V"], shown: "V", words: "go to the previous violation", run: (app) => app.nextViolation(-1) },
  { keys: ["PageUp"], shown: "Page Up", words: "scroll to processes above", run: (app) => { app.view.scroll -= 200; app.view.changed(); } },
  { keys: ["PageDown"], shown: "Page Down", words: "scroll to processes below", run: (app) => { app.view.scroll += 200; app.view.changed(); } },
  { keys: ["["], shown: "[", words: "lower lanes", run: (app) => { app.view.tall = Math.max(0.25, app.view.tall / 1.25); app.view.changed(); } },
  { keys: ["]"], shown: "]", words: "taller lanes", run: (app) => { app.view.tall = Math.min(8, app.view.tall * 1.25); app.view.changed(); } },
  { keys: ["Escape"], shown: "Esc", words: "clear the selection", run: (app) => app.clear() },
];

export const GESTURES = [
  ["drag", "move; up and down if there are more processes than fit"],
  ["wheel, pinch", "zoom; with Shift or sideways: move; with Alt: taller lanes"],
  ["click", "select an event or a message: its past and future light up"],
  ["Shift + click", "compare with what is selected: ordered, or concurrent?"],
  ["double click", "zoom in here"],
];
