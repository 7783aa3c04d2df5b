"use strict";
// Sorting, choosing and saving. Without it the page is whole: every table and chart is there, and all rows are shown.
document.documentElement.className = "js";

const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
const made = (tag, properties) => Object.assign(document.createElement(tag), properties);
const isWords = head => head.matches(".t, .l");
const rowsOf = body => [...body.rows].filter(row => row.className !== "head");

// The number that a cell begins with, behind a bracket too; NaN if there is none.
const numberIn = text => {
  const found = /^\[?≤?([+-]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[+-]?\d+)?)/.exec(text.trim());
  return found ? Number(found[1].replaceAll(",", "")) : NaN;
};

// Rows by one column, group by group; those without a value are last either way.
const sort = (table, column, descending) => {
  const words = isWords(table.tHead.rows[0].cells[column]);
  for (const body of table.tBodies) {
    const found = rowsOf(body).map(row => {
      const text = row.cells[column].textContent;
      const value = words ? text : numberIn(text);
      return {row, value, missing: words ? text === "" : isNaN(value)};
    });
    const order = words ? (a, b) => a.localeCompare(b, "en", {numeric: true}) : (a, b) => a - b;
    found.sort((a, b) => a.missing - b.missing || (a.missing ? 0 : (descending ? -1 : 1) * order(a.value, b.value)));
    body.append(...found.map(each => each.row));
  }
};

// A button in each head. Numbers begin with the greatest, words with a.
const makeSortable = table => all("thead th", table).forEach((head, column) => {
  const button = made("button", {type: "button"});
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const now = head.getAttribute("aria-sort");
    const descending = now ? now === "ascending" : !isWords(head);
    all("th[aria-sort]", table).forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    sort(table, column, descending);
  });
});

// Shows the rows of one measure and slice. A slice that is known by one measure alone brings that measure with it.
const makeChoosable = box => {
  const bodies = all("tbody[data-measure]", box);
  const choices = all("select", box);
  if (!choices.length) return;
  const open = bodies.find(body => body.className !== "off");
  choices.forEach(select => { select.value = open.dataset[select.dataset.by]; });
  box.addEventListener("change", ({target}) => {
    if (!target.matches("select")) return;
    const fits = (body, select) => body.dataset[select.dataset.by] === select.value;
    const shown = bodies.find(body => choices.every(select => fits(body, select)))
      || bodies.find(body => fits(body, target));
    bodies.forEach(body => { body.className = body === shown ? "" : "off"; });
    choices.forEach(select => { select.value = shown.dataset[select.dataset.by]; });
  });
};

// Leaves the rows whose first cell has what is typed.
const makeSearchable = box => {
  const input = box.querySelector("input");
  if (!input) return;
  const count = made("output", {htmlFor: input.id});
  input.after(count);
  const search = () => {
    const wanted = input.value.toLowerCase();
    const rows = all("tbody", box).flatMap(rowsOf);
    rows.forEach(row => { row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted); });
    const inView = rows.filter(row => row.parentNode.className !== "off");
    count.value = wanted ? `${inView.filter(row => !row.hidden).length} of ${inView.length}` : "";
  };
  input.addEventListener("input", search);
  box.addEventListener("change", search);
};

// All rows of a table as CSV; words that a spreadsheet would compute get an apostrophe.
const csvOf = table => {
  const heads = [...table.tHead.rows[0].cells];
  const words = heads.map(isWords);
  const quoted = text => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const guarded = (text, isWords) => quoted(isWords && /^[=+\-@]/.test(text) ? `'${text}` : text);
  const grouped = table.querySelector("tr.head bdi") !== null;
  const lines = [[...(grouped ? ["rows"] : []), ...heads.map(head => quoted(head.textContent))]];
  for (const body of table.tBodies) {
    const title = grouped ? [guarded(body.querySelector("tr.head bdi").textContent, true)] : [];
    rowsOf(body).forEach(row => lines.push([...title, ...[...row.cells].map((cell, i) => guarded(cell.textContent, words[i]))]));
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

// A link that saves what is shown, where that is allowed: not in a frame that is kept apart, as MLflow's.
const makeSavable = details => {
  if (window.origin === "null" && location.protocol !== "file:") return;
  details.addEventListener("toggle", () => {
    const pre = details.querySelector("pre");
    const file = new Blob([pre.textContent], {type: "text/csv;charset=utf-8"});
    const name = `${pre.dataset.name.replace(/[^\p{L}\p{N}._-]+/gu, "_")}.csv`;
    pre.before(made("a", {download: name, href: URL.createObjectURL(file), textContent: "Download"}));
  }, {once: true});
};

// On paper all is open but the data; afterwards as it was.
const printWhole = () => {
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details:not(.data):not([open])");
    opened.forEach(details => { details.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach(details => { details.open = false; }));
};

document.addEventListener("DOMContentLoaded", () => {
  all(".table").forEach(box => {
    makeSortable(box.querySelector("table"));
    makeChoosable(box);
    makeSearchable(box);
    makeReadable(box);
  });
  all("details.data").forEach(makeSavable);
  printWhole();
});
