"use strict";

// A field above each long table that hides the rows without its words.
for (const table of document.querySelectorAll(".long table")) {
  const field = document.createElement("input");
  field.type = "search";
  field.className = "search";
  field.placeholder = "Show rows with …";
  field.setAttribute("aria-label", "Show rows of " + table.caption.textContent + " with");
  field.addEventListener("input", () => {
    const word = field.value.toLowerCase();
    for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(word);
  });
  table.parentElement.before(field);
}

// Paper shows everything.
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});

const source = document.getElementById("attention-data");
if (source) {
  const texts = JSON.parse(source.textContent).texts;
  const steps = Number(source.dataset.steps);
  const [text, map, panel] = ["text", "map", "panel"].map((name) => document.getElementById("choice-" + name));

  const fill = (select, labels) => {
    const before = select.selectedIndex;
    select.replaceChildren(...labels.map((label, index) => new Option(label, index)));
    select.selectedIndex = before >= 0 && before < labels.length ? before : 0;
  };
  const chosenMap = () => texts[text.value].maps[map.value];

  const element = (name, content, attributes = {}) => {
    const made = document.createElement(name);
    made.textContent = content;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  const draw = () => {
    const { title, queries, keys, panels } = chosenMap();
    const bytes = Uint8Array.from(atob(panels[panel.value].weights), (letter) => letter.charCodeAt(0));
    const largest = Math.max(...bytes, 1);
    const table = document.createElement("table");
    table.append(element("caption", `${title} (rows: ${queries.label}, columns: ${keys.label})`));
    const head = table.createTHead().insertRow();
    head.append(element("td", ""));
    for (const token of keys.tokens) head.append(element("th", token, { scope: "col", dir: "auto" }));
    const body = table.createTBody();
    queries.tokens.forEach((token, row) => {
      const line = body.insertRow();
      line.append(element("th", token, { scope: "row", dir: "auto" }));
      keys.tokens.forEach((key, column) => {
        const byte = bytes[row * keys.tokens.length + column];
        const weight = (byte / steps).toFixed(2);
        const cell = element("td", "", { title: token + " → " + key + ": " + weight });
        cell.style.background = "rgba(var(--cell), " + byte / largest + ")";
        cell.append(element("span", weight, { class: "unseen" }));
        line.append(cell);
      });
    });
    document.getElementById("map").replaceChildren(table);
  };
  const panelsChanged = () => { fill(panel, chosenMap().panels.map((each) => each.title)); draw(); };
  const mapsChanged = () => { fill(map, texts[text.value].maps.map((each) => each.name)); panelsChanged(); };

  const step = (by) => {
    panel.selectedIndex = (panel.selectedIndex + by + panel.length) % panel.length;
    draw();
  };

  document.getElementById("choice-previous").addEventListener("click", () => step(-1));
  document.getElementById("choice-next").addEventListener("click", () => step(1));
  text.addEventListener("change", mapsChanged);
  map.addEventListener("change", panelsChanged);
  panel.addEventListener("change", draw);
  fill(text, texts.map((each) => each.title));
  mapsChanged();
  document.getElementById("choices").hidden = false;
}
