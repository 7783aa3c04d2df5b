// Search over an index that the page holds: a page on disk may fetch no other file.
document.addEventListener("DOMContentLoaded", () => {
  const most = 50;
  const box = document.querySelector(".search");
  const [input, count, list] = ["input", "output", "ul"].map(name => box.querySelector(name));
  const index = JSON.parse(box.querySelector("script").textContent)
    .map(([text, href, note]) => ({text, href, note, key: `${text} ${note}`.toLowerCase()}));
  const lineOf = ({text, href, note}) => {
    const line = document.createElement("li");
    const link = line.appendChild(document.createElement("a"));
    link.href = href;
    link.appendChild(document.createElement("bdi")).textContent = text;
    line.append(" ", note);
    return line;
  };
  const search = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(word => word);
    const found = words.length ? index.filter(({key}) => words.every(word => key.includes(word))) : [];
    list.replaceChildren(...found.slice(0, most).map(lineOf));
    const shown = found.length > most ? `, the first ${most} are shown` : "";
    count.value = words.length ? `${found.length} found${shown}` : "";
  };
  input.addEventListener("input", search);
  search();
});
