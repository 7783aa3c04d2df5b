"use strict";
// Choosing, sorting, copying and saving. Without it the page is whole: every table and chart is there, and all rows.
document.documentElement.className = "js";

const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
const made = (tag, properties) => Object.assign(document.createElement(tag), properties);
const isWords = head => head.matches(".t, .l");
const rowsOf = body => [...body.rows].filter(row => row.className !== "head");
const textOf = cell => cell ? [...cell.childNodes].filter(node => node.localName !== "small").map(node => node.textContent).join("").trim() : "";

// What is chosen, as the address has it: `#leaderboard&slice=market%3Dde&filter=dense`.
let anchor = "";
let chosen = new URLSearchParams();
const readAddress = () => {
  const parts = location.hash.slice(1).split("&");
  anchor = parts[0].includes("=") ? "" : parts.shift();
  if (parts.length || !anchor) chosen = new URLSearchParams(parts.join("&").replaceAll("+", "%2B"));
};
const writeAddress = () => {
  const hash = [anchor, String(chosen).replaceAll("+", "%20")].filter(Boolean).join("&"); // a blank as addresses have it
  try {
    history.replaceState(null, "", location.href.split("#")[0] + (hash ? `#${hash}` : ""));
  } catch { /* a frame that is kept apart, as MLflow's, has no address */ }
};
const choose = values => {
  Object.entries(values).forEach(([key, value]) => value ? chosen.set(key, value) : chosen.delete(key));
  writeAddress();
  show();
};

// The number that a cell begins with, behind a bracket too; NaN if there is none.
const numberIn = text => {
  const found = /^\[?≤?([+-]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[+-]?\d+)?)/.exec(text.trim());
  return found ? Number(found[1].replaceAll(",", "")) : NaN;
};

// Rows by one column, group by group; those without a value are last either way.
const sort = (table, column, descending) => {
  const words = isWords(table.tHead.rows[0].cells[column]);
  all("th[aria-sort]", table).forEach(head => head.removeAttribute("aria-sort"));
  table.tHead.rows[0].cells[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
  for (const body of table.tBodies) {
    const found = rowsOf(body).map(row => {
      const text = textOf(row.cells[column]);
      const value = words ? text : numberIn(text);
      return {row, value, missing: words ? text === "" : isNaN(value)};
    });
    const order = words ? (a, b) => a.localeCompare(b, "en", {numeric: true}) : (a, b) => a - b;
    found.sort((a, b) => a.missing - b.missing || (a.missing ? 0 : (descending ? -1 : 1) * order(a.value, b.value)));
    body.append(...found.map(each => each.row));
  }
};

// One of several buttons can be tabbed to; arrows lead to the others.
const makeRoving = buttons => buttons.forEach((button, place) => {
  button.tabIndex = place ? -1 : 0;
  button.addEventListener("keydown", event => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    const next = step && buttons[place + step];
    if (!next) return;
    event.preventDefault();
    [button.tabIndex, next.tabIndex] = [-1, 0];
    next.focus();
  });
});

// A button in each head. Numbers begin with the greatest, or the least if that is better; words with a.
const makeSortable = table => {
  const heads = all("thead th", table);
  makeRoving(heads.map((head, column) => {
    const button = made("button", {type: "button"});
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      sort(table, column, now ? now === "ascending" : !(isWords(head) || "lower" in head.dataset));
    });
    return button;
  }));
  table.parentNode.removeAttribute("tabindex"); // its heads can be tabbed to
};

// The groups of rows that fit the measure and the slice best.
const showGroups = box => {
  const bodies = all("tbody[data-measure], tbody[data-slice]", box);
  if (bodies.length < 2) return;
  const fit = body => 4 * (body.dataset.measure === chosen.get("measure"))
    + 2 * (body.dataset.slice === chosen.get("slice")) + (body.byDefault ? 1 : 0);
  const best = Math.max(...bodies.map(fit));
  const shown = bodies.find(body => fit(body) === best);
  bodies.forEach(body => { body.className = body === shown ? "" : "off"; });
};

// The ranks and differences by the chosen measure, or by the lead measure; a slice of a large page has the latter alone.
const showColumns = box => {
  const heads = all("thead th", box);
  const lead = heads.find(head => head.dataset.by)?.dataset.by;
  const by = heads.some(head => head.textContent === chosen.get("measure")) ? chosen.get("measure") : lead;
  const rows = all("tbody:not(.off)", box).flatMap(rowsOf);
  heads.forEach((head, column) => {
    const isOther = Boolean(head.dataset.by) && head.dataset.by !== by;
    head.hidden = isOther || !rows.some(row => row.cells[column]);
    if (head.dataset.by) rows.forEach(row => { if (row.cells[column]) row.cells[column].hidden = isOther; });
  });
  if (lead) all("tr.head small", box).forEach(scale => { scale.hidden = by !== lead; });
};

// The models by the chosen measure, the best first; without one as they were.
const showOrder = box => {
  const [table, measure] = [box.querySelector("table"), chosen.get("measure")];
  if (measure === box.measure) return;
  box.measure = measure;
  const heads = all("thead th", table);
  const column = heads.findIndex(head => head.textContent === measure);
  if (column > 0) return sort(table, column, !("lower" in heads[column].dataset));
  heads.forEach(head => head.removeAttribute("aria-sort"));
  for (const body of table.tBodies) body.append(...body.atFirst);
};

const narrow = matchMedia("(max-width: 40rem)"); // a phone, which shows fewer rows before all are asked for

// A list of names that is cut, `a, b and 9 more`, may have any name.
const hasName = (cell, name) => `, ${textOf(cell)}, `.includes(`, ${name}, `) || / and [\d,]+ more$/.test(textOf(cell));

// The rows that have every word of the filter, and those of the chosen cell of the verdicts.
const showRows = box => {
  const words = box.dataset.searched ? (chosen.get("filter") || "").toLowerCase().split(/\s+/).filter(Boolean) : [];
  const cell = box.dataset.name === "reasons" && chosen.get("model") ? [chosen.get("model"), chosen.get("dataset")] : null;
  const rows = all("tbody", box).flatMap(rowsOf);
  rows.forEach(row => {
    const text = words.length ? row.textContent.toLowerCase() : "";
    const isOfCell = !cell || (hasName(row.cells[0], cell[0]) && hasName(row.cells[3], cell[1]));
    row.hidden = !(isOfCell && words.every(word => text.includes(word)));
  });
  if (!box.dataset.most) return;
  const most = Math.min(box.dataset.most, narrow.matches ? 2 : Infinity);
  const narrowed = words.length > 0 || cell !== null;
  const opened = Boolean(chosen.get(box.dataset.name));
  const capped = !narrowed && !opened && rows.length > most;
  rows.forEach((row, place) => { row.className = place < most ? "" : "more"; });
  box.classList.toggle("capped", capped);
  const shown = rows.filter(row => !row.hidden).length;
  box.count.value = cell ? `${cell.join(" on ")}: ${shown} of ${rows.length}` : narrowed ? `${shown} of ${rows.length}` : "";
  box.more.hidden = !capped && !cell && !opened;
  box.more.textContent = capped ? `${rows.length - most} more` : cell ? "All models" : "Fewer";
};
const makeCapped = box => {
  box.count = made("output", {});
  box.more = made("button", {type: "button"});
  box.more.addEventListener("click", () => choose(
    box.dataset.name === "reasons" && chosen.get("model")
      ? {model: "", dataset: ""}
      : {[box.dataset.name]: box.classList.contains("capped") ? "all" : ""}));
  const line = made("p", {className: "more-line"});
  line.append(box.count, " ", box.more);
  box.append(line);
};

// Each cell of the verdicts that does not pass opens its reasons.
const makeMatrix = box => {
  const heads = all("thead th", box).map(head => head.textContent);
  makeRoving(all("td.bad, td.warn", box).map(cell => {
    const [model, dataset] = [cell.parentNode.cells[0].textContent, heads[cell.cellIndex]];
    const button = made("button", {type: "button", textContent: cell.textContent, ariaLabel: `${model} on ${dataset}: ${cell.textContent}`});
    button.isOf = () => chosen.get("model") === model && chosen.get("dataset") === dataset;
    button.addEventListener("click", () => {
      choose(button.isOf() ? {model: "", dataset: ""} : {model, dataset});
      box.closest("section").querySelector("[data-name=reasons]").scrollIntoView({block: "nearest"});
    });
    cell.replaceChildren(button);
    return button;
  }));
};

// All rows of a table as CSV; words that a spreadsheet would compute get an apostrophe.
const csvOf = table => {
  const heads = [...table.tHead.rows[0].cells];
  const words = heads.map(isWords);
  const detailed = heads.map((_, column) => all(`td:nth-child(${column + 1}) > small`, table).length > 0);
  const quoted = text => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const guarded = (text, isWords) => quoted(isWords && /^[=+\-@]/.test(text) ? `'${text}` : text);
  const grouped = table.querySelector("tr.head bdi") !== null;
  const both = (column, text, more) => detailed[column] ? [text, more] : [text];
  const lines = [[...(grouped ? ["rows"] : []),
    ...heads.flatMap((head, i) => both(i, quoted(head.textContent), quoted(`${head.textContent} ${words[i] ? "id" : "interval"}`)))]];
  for (const body of table.tBodies) {
    const title = grouped ? [guarded(body.querySelector("tr.head bdi").textContent, true)] : [];
    rowsOf(body).forEach(row => lines.push([...title, ...[...row.cells].flatMap((cell, i) =>
      both(i, guarded(textOf(cell), words[i]), quoted(cell.querySelector("small")?.textContent ?? "")))]));
  }
  return lines.map(line => line.join(",") + "\n").join("");
};

// The data of a table below it, written once they are asked for.
const makeReadable = box => {
  const pre = made("pre", {tabIndex: 0});
  pre.dataset.name = box.dataset.name;
  const details = made("details", {className: "data"});
  details.append(made("summary", {textContent: "Data (CSV)"}), pre);
  details.addEventListener("toggle", () => { pre.textContent ||= csvOf(box.querySelector("table")); });
  box.append(details);
};

const makeCopied = pre => {
  const button = made("button", {type: "button", textContent: "Copy"});
  button.addEventListener("click", () => {
    getSelection().selectAllChildren(pre);
    button.textContent = document.execCommand("copy") ? "Copied" : "Press Ctrl+C"; // works in every frame
  });
  return button;
};

// Buttons that copy what is shown and, where that is allowed, save it: not in a frame that is kept apart, as MLflow's.
const makeSavable = details => details.addEventListener("toggle", () => {
  const pre = details.querySelector("pre");
  pre.before(makeCopied(pre));
  if (window.origin === "null" && location.protocol !== "file:") return;
  const file = new Blob([pre.textContent], {type: "text/csv;charset=utf-8"});
  const name = `${pre.dataset.name.replace(/[^\p{L}\p{N}._-]+/gu, "_")}.csv`;
  pre.before(" ", made("a", {download: name, href: URL.createObjectURL(file), textContent: "Download"}));
}, {once: true});

// A table that is cut off at its right end fades there.
const makeFading = scroll => {
  const fade = () => scroll.parentNode.classList.toggle("cut", scroll.scrollWidth - scroll.clientWidth - scroll.scrollLeft > 2);
  scroll.addEventListener("scroll", fade, {passive: true});
  new ResizeObserver(fade).observe(scroll);
};

const openAround = element => {
  for (let at = element; at; at = at.parentElement?.closest("details")) if (at.localName === "details") at.open = true;
};

// What an address leads to: a section, which opens, or a query.
const follow = () => {
  const query = chosen.get("query");
  const found = query ? all("details[data-query]").find(details => details.dataset.query === query)
    : anchor ? document.getElementById(anchor) : null;
  if (!found) return;
  openAround(found.querySelector(":scope > details.fold") ?? found);
  found.scrollIntoView();
};

// The queries of the chosen slice, or all if none of those shown is in it.
const showQueries = () => {
  const slices = (chosen.get("slice") ?? "").split(" & ");
  const isOf = details => slices.every(slice => details.dataset.slices.split("\n").includes(slice));
  const queries = all("details[data-slices]");
  const found = queries.filter(isOf);
  queries.forEach(details => { details.hidden = found.length > 0 && !found.includes(details); });
};

// The page as it was chosen.
const show = () => {
  all(".tools select").forEach(list => { list.value = chosen.get(list.dataset.by) ?? list.options[0].value; });
  all(".tools input[type=search]").forEach(input => { if (input.value !== (chosen.get("filter") ?? "")) input.value = chosen.get("filter") ?? ""; });
  const intervals = document.getElementById("by-intervals");
  if (intervals) intervals.checked = chosen.has("intervals");
  document.documentElement.classList.toggle("intervals", chosen.has("intervals"));
  all(".table").forEach(box => {
    showGroups(box);
    showColumns(box);
    if (box.dataset.name.startsWith("leaderboard")) showOrder(box);
    showRows(box);
  });
  showQueries();
  all("[data-name=verdicts] td button").forEach(button => button.setAttribute("aria-pressed", button.isOf()));
};

document.addEventListener("DOMContentLoaded", () => {
  all("tbody").forEach(body => Object.assign(body, {byDefault: body.className !== "off", atFirst: rowsOf(body)}));
  all(".table").forEach(box => {
    box.measure = null;
    makeSortable(box.querySelector("table"));
    if (box.dataset.most) makeCapped(box);
    makeRoving(all("td summary", box));
    if (!box.matches("[data-name=gates], [data-name=verdicts]")) makeReadable(box); // the reasons have it all
    makeFading(box.querySelector(".scroll"));
  });
  all("[data-name=verdicts]").forEach(makeMatrix);
  all("details.data").forEach(makeSavable);
  all("pre.command").forEach(pre => pre.after(makeCopied(pre)));
  all(".tools select").forEach(list => list.addEventListener("change", () => choose({[list.dataset.by]: list.selectedIndex ? list.value : ""})));
  all(".tools input[type=search]").forEach(input => input.addEventListener("input", () => choose({filter: input.value})));
  document.getElementById("by-intervals")?.addEventListener("change", ({target}) => choose({intervals: target.checked ? "1" : ""}));
  document.addEventListener("toggle", ({target}) => {
    if (target.dataset.query) choose({query: target.open ? target.dataset.query : ""});
  }, true);
  narrow.addEventListener("change", show);
  addEventListener("hashchange", () => { readAddress(); writeAddress(); show(); follow(); });
  readAddress();
  show();
  follow();
});
