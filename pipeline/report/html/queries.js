// A query by its address, #query=ID, and by a click on its point in a chart.

// What is said of a query, opened: where it stands first after a chart, and else where it stands first.
const openQuery = (id, chart) => {
  const own = all("details[data-query]").filter(details => details.dataset.query === id);
  const follows = details => chart && chart.compareDocumentPosition(details) & Node.DOCUMENT_POSITION_FOLLOWING;
  const chosen = own.find(follows) || own[0];
  if (!chosen) return false;
  for (let part = chosen; part; part = part.parentElement.closest("details")) part.open = true;
  chosen.scrollIntoView({block: "nearest"});
  chosen.querySelector("summary").focus({preventScroll: true});
  return true;
};

// The query that the address names; undefined if it names none.
const addressed = () => {
  const part = location.hash.slice(1).split("&").find(part => part.startsWith("query="));
  try { return part && decodeURIComponent(part.slice(6)); } catch { return undefined; }
};

const openAddressed = () => { const id = addressed(); if (id !== undefined) openQuery(id); };

// Puts a query into the address, beside what else that says; a frame that is kept apart, as MLflow's, has none.
const keepAddressed = id => {
  const others = location.hash.slice(1).split("&").filter(part => part && !part.startsWith("query="));
  try {
    history.replaceState(null, "", `#${[...others, `query=${encodeURIComponent(id)}`].join("&")}`);
  } catch { /* as it was */ }
};

// The queries of a chart's data with both scores.
const pointsOf = figure => [...figure.querySelector("pre").textContent.matchAll(/^("(?:[^"]|"")*"|[^,\n"]*),([^,\n]*),([^,\n]*)$/gm)]
  .slice(1).map(([, id, before, after]) => [id.replace(/^"([^]*)"$/, "$1").replaceAll('""', '"'), Number(before), Number(after)]);

// A click on a chart opens the query whose point is nearest, or says which it is if no more is kept of it.
const makeClickable = figure => {
  const [left, top, width, height, low, high] = figure.dataset.points.split(" ").map(Number);
  const svg = figure.querySelector("svg"), said = made("output", {className: "quiet"});
  svg.after(said);
  svg.addEventListener("click", event => {
    const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
    const distance = ([, before, after]) => Math.hypot(
      left + (before - low) / (high - low) * width - (event.clientX - box.left) * scale,
      top + height - (after - low) / (high - low) * height - (event.clientY - box.top) * scale);
    const near = pointsOf(figure).map(point => [distance(point), point]).filter(([far]) => far < 12);
    if (!near.length) return;
    const least = Math.min(...near.map(([far]) => far)), here = near.filter(([far]) => far < least + .5).map(([, point]) => point);
    const [id] = here.find(([id]) => openQuery(id, figure)) || [];
    if (id !== undefined) keepAddressed(id);
    said.value = id !== undefined ? "" : `${here.map(([id]) => id).slice(0, 5).join(", ")}${here.length > 5 ? " …" : ""}: ${here[0][1].toFixed(4)} → ${here[0][2].toFixed(4)}`;
  });
};

document.addEventListener("DOMContentLoaded", () => {
  all("figure[data-points]").forEach(makeClickable);
  openAddressed();
});
addEventListener("hashchange", openAddressed);
