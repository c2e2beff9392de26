"use strict";

const GAP = "[MASK]";
const BEAMS = [1, 5, 10];
const STRONGEST = 0.45; // opacity of the strongest colour, on which text stays readable
const MOST = 40; // letters of an example on its button
const LABELS = 10;
const ALTERNATIVES = 5;

const at = (id) => document.getElementById(id);
const token = location.hash.slice(1);
const headers = { "Content-Type": "application/json", ...(token && { Authorization: `Bearer ${token}` }) };
let about = { answer: null, details: false, params: {}, examples: [] };
let asked = 0;

const make = (name, content = "", attributes = {}) => {
  const made = document.createElement(name);
  made.append(...[content].flat());
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};
const percent = (share) => {
  const text = (100 * share).toFixed(1);
  if (text === "0.0" && share > 0) return "<0.1 %";
  return text === "100.0" && share < 1 ? ">99.9 %" : `${text} %`;
};
const colour = (share) => `rgba(var(--${share < 0 ? "against" : "cell"}), ${Math.min(Math.abs(share), 1) * STRONGEST})`;
const quoted = (text) => make("bdi", `“${text}”`); // keeps its place beside text of another direction

const failure = async (answer) => {
  if (answer.status === 401) return "This server needs its token: open the address that `transformer serve` printed.";
  const text = await answer.text();
  try {
    return JSON.parse(text).message ?? text;
  } catch {
    return text || `The server answered with status ${answer.status}.`;
  }
};

// Words to point at: one of them can be focused, the arrow keys move to its neighbours.
const words = (label, tokens, describe) => {
  const box = make("div", "", { class: "tokens", role: "listbox", "aria-orientation": "horizontal", "aria-label": label, dir: "auto" });
  const options = tokens.map((each) => {
    const option = make("span", each.text, { role: "option", tabindex: -1, "aria-selected": false });
    if (each.joined) option.classList.add("joined");
    return option;
  });
  const choose = (index) => {
    options.forEach((option, place) => {
      option.setAttribute("aria-selected", place === index);
      option.tabIndex = place === index ? 0 : -1;
    });
    describe(index, options);
  };
  options.forEach((option, index) => {
    option.addEventListener("mouseenter", () => choose(index));
    option.addEventListener("click", () => choose(index));
    option.addEventListener("focus", () => choose(index));
  });
  box.addEventListener("keydown", (event) => {
    const now = options.indexOf(document.activeElement);
    const forward = getComputedStyle(box).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    const back = forward === "ArrowLeft" ? "ArrowRight" : "ArrowLeft";
    const next = { [forward]: now + 1, [back]: now - 1, Home: 0, End: options.length - 1 }[event.key];
    if (now < 0 || next === undefined || !options[next]) return;
    event.preventDefault();
    options[next].focus();
  });
  if (options.length) options[0].tabIndex = 0;
  box.append(...options);
  return box;
};

const bars = (rows) => {
  const list = make("dl", "", { class: "bars" });
  for (const [name, share] of rows) {
    const bar = make("div", "", { class: "bar" });
    bar.style.width = `${100 * share}%`;
    const label = make("dt", name, { dir: "auto" });
    list.append(make("div", [label, make("dd", bar, { "aria-hidden": true }), make("dd", percent(share))], { class: "contents" }));
  }
  return list;
};

const translation = ({ source, answers }) => {
  const shown = make("div");
  const hint = make("p", "", { class: "hint", role: "status" });
  const draw = (chosen) => {
    const { text, tokens, attention } = answers[chosen];
    const read = make("div", source.map((each) => {
      const word = make("span", [make("span", each.text), make("small")], { class: each.joined ? "joined" : "" });
      if (each.unknown) {
        word.firstChild.classList.add("unknown");
        word.title = "not in the vocabulary";
        word.firstChild.append(make("span", " (unknown)", { class: "unseen" }));
      }
      return word;
    }), { class: "tokens", dir: "auto" });
    const attended = words("Words of the translation", tokens, (index) => {
      if (!attention) return;
      const weights = attention[index];
      [...read.children].forEach((word, place) => {
        word.style.background = colour(Math.sqrt(weights[place]));
        word.lastChild.textContent = weights[place] < 0.01 ? "" : percent(weights[place]);
      });
      const order = weights.map((_, place) => place).sort((one, two) => weights[two] - weights[one]).slice(0, 3);
      const best = order.flatMap((place) => [" ", quoted(source[place].text), ` ${percent(weights[place])},`]);
      const rest = Math.max(1 - weights.reduce((sum, weight) => sum + weight, 0), 0);
      hint.replaceChildren(quoted(tokens[index].text), " attends to", ...best, ` the text's begin and end ${percent(rest)}.`);
    });
    hint.textContent = attention
      ? "Point at a word of the translation, or go there with Tab and the arrow keys: the words that it attends to get a colour (mean over the layers and heads of the decoder)."
      : "No attention to show: the text is too long, or the model has none.";
    shown.replaceChildren(
      make("p", text || "(nothing)", { class: "big", dir: "auto", id: "best" }),
      ...(tokens.length ? [make("h3", "Word by word"), attended, make("h3", "From"), read, hint] : []),
    );
    for (const [place, button] of [...list.querySelectorAll("button")].entries()) {
      button.setAttribute("aria-pressed", place === chosen);
    }
  };
  const list = make("ol", answers.map((each, place) => {
    const button = make("button", [make("bdi", each.text || "(nothing)"), ` (${each.score.toFixed(2)})`], { type: "button" });
    button.addEventListener("click", () => draw(place));
    return make("li", button);
  }));
  draw(0);
  const note = "Scores are log probabilities, normalized by length as in the evaluation.";
  const rest = answers.length > 1 ? [make("h3", "Alternatives"), list, make("p", note, { class: "hint" })] : [];
  return [make("h2", "Translation"), shown, ...rest];
};

const classification = ({ labels, answer, words: parts }) => {
  const say = (part) => {
    const change = `${part.contribution > 0 ? "−" : "+"}${Math.abs(part.contribution).toFixed(1)}`;
    return ["Without ", quoted(part.text), ": ", make("bdi", answer), ` ${percent(part.probability)} (log odds ${change})`];
  };
  const largest = Math.max(...parts.map((part) => Math.abs(part.contribution)), 1);
  const hint = make("p", "Point at a word to see the answer without it.", { class: "hint", role: "status" });
  const read = words("Words of the text", parts, (index) => hint.replaceChildren(...say(parts[index])));
  parts.forEach((part, place) => { read.children[place].style.background = colour(part.contribution / largest); });
  const note = `Each word is left out of the text in turn (occlusion). Blue speaks for ${answer}, orange against it. Words that decide only together, or say the same twice, seem to weigh little. Log odds also tell apart what is near 0 or 100 %.`;
  const reasons = parts.length ? [read, hint] : [make("p", "The text is empty, or too long to leave out its words one by one.")];
  const decisive = [...parts].sort((one, two) => Math.abs(two.contribution) - Math.abs(one.contribution)).slice(0, 3);
  return [
    make("h2", "Label"),
    make("p", answer, { class: "big", id: "best", dir: "auto" }),
    bars(labels.slice(0, LABELS).map((each) => [each.label, each.probability])),
    ...(labels.length > LABELS ? [make("p", `and ${labels.length - LABELS} less probable ones`)] : []),
    make("h3", "Words that decide"),
    ...reasons,
    make("ul", decisive.map((part) => make("li", say(part)))),
    make("p", note, { class: "hint" }),
  ];
};

const filling = ({ fillings }) => [
  make("h2", "Fillings"),
  make("p", fillings[0].text, { class: "big", id: "best", dir: "auto" }),
  bars(fillings.map((each) => [each.words.join(", ") || "(no gap)", each.probability])),
];

const continuation = ({ next, continuations }, answer) => {
  const more = continuations.map((each) => {
    const button = make("button", make("bdi", each.text), { type: "button" });
    button.addEventListener("click", () => ask(each.text));
    return make("li", [button, ` begins with ${percent(each.probability)}, perplexity ${each.perplexity.toFixed(2)} per token (1: certain)`]);
  });
  return [
    make("h2", "Continuation"),
    make("p", answer, { class: "big", id: "best", dir: "auto" }),
    make("h3", "Next token"),
    bars(next.map((each) => [each.end ? "(end of the text)" : each.text || "(space)", each.probability])),
    make("h3", "Where the likeliest lead"),
    make("ol", more),
  ];
};

const plain = (row) => Object.entries(row).flatMap(([name, value]) => [make("h2", name), make("p", String(value), { class: "big", dir: "auto" })]);

const show = (row, seconds) => {
  const { details, notes, ...answers } = row;
  let content = [];
  if (!details) content = plain(answers);
  else if (details.answers) content = translation(details);
  else if (details.labels) content = classification(details);
  else if (details.fillings) content = filling(details);
  else if (details.next) content = continuation(details, answers[about.answer]);
  if (notes) content.push(make("p", `Note: ${notes}`, { id: "notes", dir: "auto" }));
  if (details) {
    const took = `${details.engine} answered in ${(1000 * details.seconds).toFixed(0)} ms; with all details ${(1000 * seconds).toFixed(0)} ms.`;
    content.push(make("p", took, { class: "facts" }));
    const engine = at("engine").value;
    at("engine").replaceChildren(...details.engines.map((name) => make("option", name)));
    at("engine").value = engine;
  }
  at("answer").replaceChildren(...content);
};

const fail = (line) => {
  at("error").textContent = line;
  at("answer").replaceChildren();
};

const ask = async (text) => {
  at("text").value = text;
  const number = ++asked;
  at("status").textContent = "Asking …";
  const params = about.details ? { details: true, engine: at("engine").value } : {};
  const beam = Number(at("beam").value);
  if (beam) params.beam_size = beam;
  const width = beam || about.params.beam_size;
  if (about.details && width > 1) params.n_best = Math.min(width, ALTERNATIVES);
  const body = JSON.stringify({ dataframe_split: { columns: ["text"], data: [[text]] }, params });
  const started = performance.now();
  let row, line;
  try {
    const answer = await fetch("invocations", { method: "POST", headers, body });
    if (answer.ok) row = (await answer.json()).predictions[0];
    else line = await failure(answer);
  } catch {
    line = "The server does not answer: is it still running?";
  }
  if (number !== asked) return; // a later question overtook this one
  at("status").textContent = at("error").textContent = "";
  if (row) show(row, (performance.now() - started) / 1000);
  else fail(line);
};

at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  ask(at("text").value);
});
at("text").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  at("form").requestSubmit();
});
at("gap").addEventListener("click", () => {
  const text = at("text");
  text.setRangeText(GAP, text.selectionStart, text.selectionEnd, "end");
  text.focus();
});
for (const name of ["engine", "beam"]) at(name).addEventListener("change", () => ask(at("text").value));

const begin = async () => {
  try {
    const answer = await fetch("about.json", { headers });
    if (!answer.ok) return fail(await failure(answer));
    about = await answer.json();
  } catch {
    return fail("The server does not answer: is it still running?");
  }
  at("title").textContent = document.title = about.title;
  at("submit").textContent = { translation: "Translate", label: "Classify" }[about.answer] ?? "Complete";
  at("gap").hidden = !about.examples.some((text) => text.includes(GAP));
  if ("beam_size" in about.params) {
    at("beam").append(...[make("option", "as evaluated", { value: 0 }), ...BEAMS.map((size) => make("option", String(size)))]);
    at("beams").hidden = false;
  }
  at("examples").append(...about.examples.map((text) => {
    const button = make("button", text.length > MOST ? `${text.slice(0, MOST)}…` : text, { type: "button", dir: "auto" });
    button.addEventListener("click", () => ask(text));
    return make("li", button);
  }));
  if (about.examples.length) ask(about.examples[0]);
};
addEventListener("hashchange", () => location.reload()); // another token
begin();
