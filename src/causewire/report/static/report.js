"use strict";
// Draws every figure as wide as there is room for, and again when that changes.
(() => {
  const reset = { actions: false, renderer: "svg", ast: false, tooltip: { theme: "custom" } };

  function fitted(spec, width) {
    const fit = structuredClone(spec);
    const legend = fit.config.legend;
    fit.config.background = "transparent";
    const each = fit.spec || fit;
    if (fit.facet || fit.concat) {
      const least = fit.concat ? 300 : 250;
      fit.config.legend.offset = 12;
      fit.columns = Math.max(1, Math.min(fit.columns, Math.floor(width / least)));
      const labels = fit.usermeta.labels;
      const room = fit.concat
        ? width / fit.columns - labels - 30
        : (width - labels) / fit.columns - 24;
      for (const panel of fit.concat || [fit.spec]) panel.width = Math.max(90, Math.floor(room));
    } else {
      each.width = Math.max(200, width - 4);
      each.autosize = { type: "fit", contains: "padding" };
      each.height += width < 620 ? 90 : 40;
    }
    if (fit.facet || width < 620) {
      legend.orient = "bottom";
      legend.columns = Math.max(1, Math.floor(width / (fit.usermeta.legend + 40)));
    }
    return fit;
  }

  async function draw(chart) {
    const box = chart.querySelector(".drawing");
    const width = Math.floor(box.clientWidth);
    if (!width || width === chart.drawnWidth) return;
    chart.drawnWidth = width;
    const spec = JSON.parse(chart.querySelector("script").textContent);
    const old = chart.view;
    const { view } = await vegaEmbed(box, fitted(spec, width), reset);
    chart.view = view;
    if (old) old.finalize();
    chart.dataset.drawn = width;
  }

  function saves(chart) {
    const caption = chart.querySelector("figcaption");
    for (const kind of ["svg", "png"]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `Save as ${kind.toUpperCase()}`;
      button.addEventListener("click", async () => {
        const link = document.createElement("a");
        await chart.view.background("white").runAsync();
        link.href = await chart.view.toImageURL(kind, 2);
        chart.view.background("transparent").run();
        link.download = `${chart.dataset.name}.${kind}`;
        link.click();
      });
      caption.append(" ", button);
    }
  }

  const charts = [...document.querySelectorAll("figure.chart")];
  const seen = new ResizeObserver((entries) => {
    for (const entry of entries) requestAnimationFrame(() => draw(entry.target));
  });
  for (const chart of charts) {
    saves(chart);
    seen.observe(chart);
  }
})();
