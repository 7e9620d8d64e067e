"use strict";
// Puts the data of this file on the page. Every text becomes a text node: nothing here parses HTML.

const byId = (id) => document.getElementById(id);

function el(name, options = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (key === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else if (key in node && key !== "list") node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined).map((child) =>
    child instanceof Node ? child : String(child)));
  return node;
}

function svg(name, attributes = {}, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

const percent = (value) => (value === null ? "-" : `${(100 * value).toFixed(1)}%`);
const span = (rate) => (rate === null ? "-" : `${(100 * rate.low).toFixed(1)}-${percent(rate.high)}`);
const dollars = (value) => (value === null ? "-" : `$${value && value < 1 ? value.toFixed(4) : value.toFixed(2)}`);
const number = (value, digits = 1) => (value === null ? "-" : Number(value).toFixed(digits));
const whole = (value) => (value === null ? "-" : Number(value).toLocaleString("en"));
const kind = (outcome) => (["resolved", "unresolved"].includes(outcome) ? outcome
  : ["infrastructure", "run_cost_limit"].includes(outcome) ? "error" : "other");

// A table whose columns sort at a click. A cell is {text, value, node}; rows with `last` stay at the end.
function table(allHeadings, allRows, caption) {
  // a column in which nothing is known would only take room
  const kept = allHeadings.map((_, at) => allRows.some((row) => row.cells[at].node || row.cells[at].text !== "-"));
  const headings = allHeadings.filter((_, at) => kept[at]);
  const rows = allRows.map((row) => ({ ...row, cells: row.cells.filter((_, at) => kept[at]) }));
  const body = el("tbody");
  const draw = (ordered) => body.replaceChildren(...ordered.map((row) => {
    const line = el("tr", { className: row.last ? "reference" : "" });
    line.append(...row.cells.map((cell, at) =>
      el("td", { className: headings[at].text ? "text" : "" }, cell.node ?? cell.text)));
    return line;
  }));
  const heads = headings.map((heading, at) => {
    const head = el("th", { scope: "col", className: heading.text ? "text" : "" });
    head.append(el("button", { type: "button", on: { click: () => {
      const up = head.getAttribute("aria-sort") === "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => row.cells[at].value ?? row.cells[at].text;
      const ordered = rows.filter((row) => !row.last).sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === null || y === null) return (x === null) - (y === null);
        const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
        return up ? order : -order;
      });
      draw([...ordered, ...rows.filter((row) => row.last)]);
    } } }, heading.name));
    return head;
  });
  draw(rows);
  return el("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: caption },
    el("table", {}, el("thead", {}, el("tr", {}, ...heads)), body));
}

const cell = (text, value, node) => ({ text, value: value === undefined ? text : value, node });

function claws(data) {
  const seen = Object.keys(data.outcomes).filter((name) => data.rows.some((row) => row.outcomes[name]));
  const headings = [
    { name: "claw", text: true }, { name: "model", text: true }, ...["Pass@1", "95% interval", "at least", "instances",
      "cases", "cost", "per case", "per resolved", "seconds", "turns", "cache hit"].map((name) => ({ name })),
    ...seen.map((name) => ({ name: name.replaceAll("_", " ") })),
  ];
  const rows = data.rows.map((row) => ({ cells: [
    cell(row.name + (row.elsewhere ? " (made elsewhere)" : "")), cell(row.model),
    cell(percent(row.rate?.value ?? null), row.rate?.value ?? null), cell(span(row.rate)),
    cell(percent(row.at_least), row.at_least), cell(whole(row.rate?.instances ?? 0), row.rate?.instances ?? 0),
    cell(whole(row.cases) + (row.open ? ` (+${row.open} open)` : ""), row.cases),
    cell(dollars(row.dollars), row.dollars), cell(dollars(row.dollars_per_case), row.dollars_per_case),
    cell(dollars(row.dollars_per_resolved), row.dollars_per_resolved), cell(number(row.seconds), row.seconds),
    cell(number(row.turns), row.turns), cell(percent(row.cache), row.cache),
    ...seen.map((name) => cell(percent(row.cases ? row.outcomes[name] / row.cases : null), row.outcomes[name])),
  ] })).sort((a, b) => (b.cells[2].value ?? -1) - (a.cells[2].value ?? -1));
  const published = data.published.map((row) => ({ last: true, cells: [
    cell(`published: ${row.claw}`), cell(row.model), cell(percent(row.rate)), cell("-"), cell("-"),
    cell(whole(row.instances)), ...Array(headings.length - 6).fill(cell("-"))] }));
  byId("claws").replaceChildren(table(headings, [...rows, ...published], "Claws"));
  const notes = data.comparison.conclusions.length ? data.comparison.conclusions
    : data.rows.length === 1 ? ["One row alone says nothing about other claws or models; the interval says how far other "
      + "instances of the same kind could move it."] : [];
  if (published.length) notes.push("Published rows are results of Claw-SWE-Bench over the full set, not of these runs.");
  byId("conclusion").replaceChildren(...notes.map((note) => el("span", {}, note, el("br"))));
}

function models(data) {
  const headings = [{ name: "model", text: true }, { name: "claws" }, { name: "mean Pass@1" }, { name: "best claw", text: true },
    { name: "its Pass@1" }];
  byId("models").replaceChildren(table(headings, data.models.map((row) => ({ cells: [cell(row.model), cell(row.claws),
    cell(percent(row.mean), row.mean), cell(row.best ?? "-"), cell(percent(row.rate ?? null), row.rate ?? null)] })), "Models"));
}

function ways(data) {
  if (!data.collected.rows.length) return;
  const headings = data.collected.headings.map((name) => ({ name, text: name === "claw" || name === "arm" }));
  const value = (text) => (/^[0-9.]+%?$/.test(text) ? parseFloat(text) : text);
  byId("collected").replaceChildren(table(headings, data.collected.rows.map((row) => ({
    cells: row.map((text) => cell(text, value(text))) })), "Ways of the patch"));
  byId("ways").hidden = false;
}

function parts(id, what, rows, data) {
  const headings = [{ name: what, text: true }, { name: "instances" }, ...data.rows.map((row) => ({ name: row.name }))];
  byId(id).replaceChildren(table(headings, rows.map((row) => ({ cells: [
    cell(row.name), cell(whole(Math.max(0, ...row.rates.map((rate) => rate?.instances ?? 0)))),
    ...row.rates.map((rate) => cell(rate ? `${percent(rate.value)} (${span(rate)})` : "-", rate?.value ?? null)),
  ] })), `Pass@1 by ${what}`), el("p", { className: "note" }, "In brackets, the 95% interval: with few instances it is wide, "
    + `and among many values some are high or low by chance, so this table alone does not show that a ${what} differs.`));
}

function pareto(data) {
  const points = data.rows.filter((row) => row.rate && row.dollars_per_case !== null);
  if (!points.length) {
    byId("pareto").replaceChildren(el("p", { className: "note" }, "No cost is known."));
    return;
  }
  const [width, height, left, bottom] = [760, 360, 56, 46];
  const most = Math.max(...points.map((row) => row.dollars_per_case)) * 1.15 || 1;
  const x = (cost) => left + (width - left - 150) * (cost / most);
  const y = (share) => 12 + (height - bottom - 12) * (1 - share);
  const figure = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label":
    "Pass@1 by dollars per case; the line joins the rows that no other row beats in both" });
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    figure.append(svg("line", { class: "axis", x1: left, x2: width - 150, y1: y(share), y2: y(share) }),
      svg("text", { x: left - 8, y: y(share) + 4, "text-anchor": "end" }, `${100 * share}%`));
  }
  for (const part of [0, 0.5, 1]) {
    figure.append(svg("text", { x: x(most * part), y: height - 24, "text-anchor": "middle" }, dollars(most * part)));
  }
  figure.append(svg("text", { x: left, y: height - 6 }, "US dollars per case"));
  const front = points.filter((row) => !points.some((other) => other !== row
    && other.dollars_per_case <= row.dollars_per_case && other.rate.value >= row.rate.value
    && (other.dollars_per_case < row.dollars_per_case || other.rate.value > row.rate.value)))
    .sort((a, b) => a.dollars_per_case - b.dollars_per_case);
  figure.append(svg("polyline", { class: "front", points: front.map((row) =>
    `${x(row.dollars_per_case)},${y(row.rate.value)}`).join(" ") }));
  for (const row of points) {
    const [cx, cy] = [x(row.dollars_per_case), y(row.rate.value)];
    figure.append(svg("line", { class: "span", x1: cx, x2: cx, y1: y(row.rate.low), y2: y(row.rate.high) }),
      svg("circle", { cx, cy, r: 5 }), svg("text", { x: cx + 9, y: cy + 15 }, row.name));
  }
  byId("pareto").replaceChildren(figure);
}

function heatMap(data) {
  const cases = new Map();
  data.cases.forEach((one, at) => {
    const key = `${one[0]} ${one[1]}`;
    cases.set(key, [...(cases.get(key) ?? []), at]);
  });
  const grid = el("div", { className: "map" });
  grid.style.gridTemplateColumns = `max-content repeat(${data.rows.length}, max-content)`;
  grid.append(el("span"), ...data.rows.map((row) => el("span", { className: "head", title: row.name }, row.name)));
  for (const [instance] of data.instances) {
    grid.append(el("span", { className: "name" }, instance));
    data.rows.forEach((row, at) => {
      const found = cases.get(`${at} ${instance}`) ?? [];
      if (!found.length) {
        grid.append(el("span"));
        return;
      }
      const passed = found.filter((one) => data.cases[one][3] === "resolved").length;
      const outcome = data.cases[found[0]][3];
      const mixed = passed > 0 && passed < found.length;
      const says = `${row.name}, ${instance}: ${mixed ? `${passed} of ${found.length} resolved` : outcome.replaceAll("_", " ")}`;
      grid.append(el("button", { type: "button", className: mixed ? "other" : kind(outcome), title: says, ariaLabel: says,
        on: { click: () => show(data, found[0]) } }, mixed ? passed : ""));
    });
  }
  byId("map").replaceChildren(el("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: "Map" }, grid));
  const key = (name, text) => [el("span", { className: `key ${name}` }), text];
  byId("legend").replaceChildren(...key("resolved", "resolved"), ...key("unresolved", "unresolved"),
    ...key("other", "another failure, or samples that differ (with the number resolved)"), ...key("error", "does not count"));
}

const MOST_SHOWN = 200;

function cases(data) {
  const places = new Map(data.instances.map(([name, language, repository]) => [name, { language, repository }]));
  const texts = data.cases.map((one) => [data.rows[one[0]].name, one[1], places.get(one[1]).repository, one[7]]
    .join(" ").toLowerCase());
  const options = (id, values) => byId(id).append(...values.map(([value, text]) => el("option", { value }, text)));
  options("by-row", data.rows.map((row, at) => [at, row.name]));
  options("by-outcome", Object.keys(data.outcomes).filter((name) => data.cases.some((one) => one[3] === name))
    .map((name) => [name, name.replaceAll("_", " ")]));
  options("by-language", data.languages.map((row) => [row.name, row.name]));
  const headings = [{ name: "case", text: true }, { name: "outcome", text: true }, { name: "seconds" }, { name: "turns" },
    { name: "cost" }, { name: "detail", text: true }];
  const update = () => {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const [row, outcome, language] = ["by-row", "by-outcome", "by-language"].map((id) => byId(id).value);
    const found = data.cases.map((_, at) => at).filter((at) => (row === "" || data.cases[at][0] === Number(row))
      && (outcome === "" || data.cases[at][3] === outcome)
      && (language === "" || places.get(data.cases[at][1]).language === language)
      && words.every((word) => texts[at].includes(word)));
    const rest = found.length > MOST_SHOWN ? `, the first ${MOST_SHOWN} are shown` : "";
    byId("found").textContent = `${found.length} of ${data.cases.length} cases${rest}`;
    byId("cases").replaceChildren(table(headings, found.slice(0, MOST_SHOWN).map((at) => {
      const [of, instance, sample, ended, seconds, turns, cost, detail] = data.cases[at];
      const name = `${data.rows[of].name}: ${instance}${sample > 1 ? `, sample ${sample}` : ""}`;
      const open = el("button", { type: "button", className: "case", on: { click: () => show(data, at) } }, name);
      return { cells: [cell(name, name, open), cell(ended.replaceAll("_", " ")), cell(number(seconds), seconds),
        cell(number(turns, 0), turns), cell(dollars(cost), cost), cell(detail.slice(0, 80))] };
    }), "Cases"));
  };
  byId("filter").addEventListener("input", update);
  byId("filter").addEventListener("submit", (event) => event.preventDefault());
  update();
}

function patch(text) {
  const block = el("pre", { tabIndex: 0 });
  let inHunk = false;  // there, a removed line may look like a header
  for (const line of text.replace(/\n$/, "").split("\n")) {
    if (line.startsWith("@@")) inHunk = true;
    if (line.startsWith("diff ")) inHunk = false;
    const name = !inHunk || line.startsWith("@@") ? "hunk" : line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : "";
    block.append(el("span", { className: name }, line));
  }
  return block;
}

const block = (text) => el("pre", { tabIndex: 0 }, text);
const fold = (title, ...content) => el("details", {}, el("summary", {}, title), ...content);

function turns(rows) {
  const names = ["input", "cache_read", "cache_write", "output", "reasoning"];
  const headings = ["turn", "seconds", ...names.map((name) => name.replace("_", " ")), "cost", "ended"].map((name) => ({ name }));
  return table(headings, rows.map((row, at) => ({ cells: [cell(String(at + 1), at), cell(number(row.latency, 2), row.latency),
    ...names.map((name) => cell(whole(row.tokens?.[name] ?? null), row.tokens?.[name] ?? null)),
    cell(dollars(row.cost?.priced == null ? null : Number(row.cost.priced))),
    cell([row.finish_reason ?? row.ending, row.error].filter(Boolean).join(": "))] })), "Turns");
}

// The lines of a JSON-lines session that are messages become a readable exchange; other files stay as they are.
function session(name, text) {
  const messages = [];
  for (const line of text.split("\n").filter(Boolean)) {
    let row;
    try { row = JSON.parse(line); } catch { return fold(name, block(text)); }
    const message = row?.message ?? row;
    if (message === null || typeof message !== "object" || typeof message.role !== "string") continue;
    const content = typeof message.content === "string" ? message.content : JSON.stringify(message.content ?? "", null, 1);
    const calls = message.tool_calls ? `\n${JSON.stringify(message.tool_calls, null, 1)}` : "";
    messages.push(el("h3", {}, message.role + (message.name ? ` (${message.name})` : "")), block((content + calls).trim()));
  }
  return messages.length ? fold(`${name}: ${messages.length / 2} messages`, ...messages) : fold(name, block(text));
}

let packed = null;

async function show(data, at) {
  packed ??= byId("details").textContent.split("\n");
  const found = await unpacked(packed[at]);
  const record = found.record;
  byId("panel-title").textContent = `${record.agent_label}: ${record.instance_id}${record.sample > 1 ? `, sample ${record.sample}` : ""}`;
  const dropped = (found.dropped ?? []).map((one) => el("li", {}, `${one.path ?? JSON.stringify(one)}: ${one.reason ?? ""}`));
  const content = [
    el("p", {}, el("strong", {}, record.outcome.replaceAll("_", " ")), `: ${data.outcomes[record.outcome]}. ${record.detail}`),
    el("p", { className: "note" }, found.folder),
    el("h3", {}, "Patch"), found.patch ? patch(found.patch) : el("p", {}, "empty"),
    dropped.length ? fold(`Left out of the patch: ${dropped.length}`, el("ul", {}, ...dropped)) : null,
    found.ways.length ? el("h3", {}, "The diff in the final message") : null,
    ...found.ways.map(([arm, means, verdict, detail]) => el("p", {}, el("strong", {}, arm),
      `: ${means}; ${verdict.replaceAll("_", " ")}. ${detail}`)),
    found.corruption ? fold("What was judged instead of the claw's change", patch(found.corruption)) : null,
    record.failing_tests.length ? el("h3", {}, `Failing tests: ${record.failing_tests.length}`) : null,
    record.failing_tests.length ? block(record.failing_tests.join("\n")) : null,
    found.log ? fold("Output of the tests", block(found.log)) : null,
    found.turns.length ? el("h3", {}, "Turns") : null, found.turns.length ? turns(found.turns) : null,
    el("h3", {}, "Session"), found.prompt ? fold("prompt", block(found.prompt)) : null,
    ...found.session.map(([name, text]) => session(name, text)),
    found.output ? fold("standard output", block(found.output)) : null,
    el("h3", {}, "Records"), fold("outcome", block(JSON.stringify(record, null, 2))),
    found.manifest ? fold("manifest", block(JSON.stringify(found.manifest, null, 2))) : null,
  ];
  byId("panel-body").replaceChildren(...content.filter(Boolean));
  byId("panel").showModal();
  byId("panel").scrollTop = 0;
}

async function main() {
  const data = await unpacked(byId("overview").textContent);
  byId("about").textContent = `${data.runs.length > 1 ? "Runs" : "Run"} ${data.runs.join(", ")}; ${data.cases.length} cases; `
    + `written ${data.written.replace("T", " ").replace("Z", " UTC")}`;
  if (data.comparison.confounded.length) {
    byId("banner").replaceChildren(el("p", {}, el("strong", {}, "Some rows can't be compared.")),
      ...data.comparison.confounded.map((line) => el("p", {}, line)));
    byId("banner").hidden = false;
  }
  claws(data);
  models(data);
  ways(data);
  pareto(data);
  parts("languages", "language group", data.languages, data);
  parts("repositories", "repository", data.repositories, data);
  heatMap(data);
  cases(data);
  byId("close").addEventListener("click", () => byId("panel").close());
  document.documentElement.dataset.ready = "yes";
}

main();
