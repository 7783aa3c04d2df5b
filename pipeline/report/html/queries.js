// A query by a click on its point in a chart.
{
  // Opens a query, which puts it into the address.
  const unfold = details => {
    openAround(details);
    details.scrollIntoView({block: "nearest"});
    details.querySelector("summary").focus({preventScroll: true});
  };

  // The queries of a chart's data with both scores.
  const pointsOf = figure => [...figure.querySelector("pre").textContent.matchAll(/^("(?:[^"]|"")*"|[^,\n"]*),([^,\n]*),([^,\n]*)$/gm)]
    .slice(1).map(([, id, before, after]) => ({id: id.replace(/^"([^]*)"$/, "$1").replaceAll('""', '"'), before, after}));

  // The queries that stand below a chart and above the next one, with the scores in their titles: names may be cut there.
  const listedBelow = figure => {
    const follows = (one, other) => one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING;
    const next = all("figure[data-points]").find(other => follows(figure, other));
    return all("details[data-query]").filter(details => follows(figure, details) && !(next && follows(next, details))).map(details => {
      const [, before, after] = /(\S+) → (\S+) \(\S+\)$/.exec(details.querySelector("summary").textContent) || [];
      return {details, before, after};
    });
  };

  // A click on a chart opens the query whose point is nearest, or says which it is if no more is kept of it.
  const makeClickable = figure => {
    const [left, top, width, height, low, high] = figure.dataset.points.split(" ").map(Number);
    const svg = figure.querySelector("svg"), said = made("output", {className: "quiet"});
    svg.after(said);
    svg.addEventListener("click", event => {
      const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
      const distance = ({before, after}) => Math.hypot(
        left + (before - low) / (high - low) * width - (event.clientX - box.left) * scale,
        top + height - (after - low) / (high - low) * height - (event.clientY - box.top) * scale);
      const nearest = points => points.map(point => ({...point, far: distance(point)})).filter(({far}) => far < 12)
        .sort((one, other) => one.far - other.far);
      const drawn = nearest(pointsOf(figure)), [listed] = nearest(listedBelow(figure));
      said.value = "";
      if (listed && listed.far < (drawn[0]?.far ?? 12) + .5) {
        unfold(listed.details);
      } else if (drawn.length) {
        const here = drawn.filter(({far}) => far < drawn[0].far + .5).map(({id}) => id);
        const scores = [drawn[0].before, drawn[0].after].map(score => Number(score).toFixed(4)).join(" → ");
        said.value = `${here.slice(0, 5).join(", ")}${here.length > 5 ? " …" : ""}: ${scores}`;
      }
    });
  };

  document.addEventListener("DOMContentLoaded", () => all("figure[data-points]").forEach(makeClickable));
}
