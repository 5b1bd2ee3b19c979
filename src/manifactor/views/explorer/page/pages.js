// The pages beside the first: spectrum, matrix of angles, evidence.

import { own } from "./colours.js";
import { byId, html, short, svg, ticks } from "./elements.js";
import { read } from "./server.js";

const WIDTH = 900;
const HEIGHT = 420;
const LEFT = 90;

async function spectrum(about, colourBy) {
  const { eigenvalues, owners, text } = await read("spectrum");
  const most = Math.max(...eigenvalues);
  const x = (i) => LEFT + ((i + 0.5) * (WIDTH - LEFT - 10)) / eigenvalues.length;
  const y = (value) => 10 + (HEIGHT - 60) * (1 - value / most);
  const scale = ticks(0, most).flatMap(([value, label]) => [
    svg("path", { class: "axis", d: `M${LEFT} ${y(value)}H${WIDTH - 10}` }),
    svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, label),
  ]);
  const dots = eigenvalues.map((value, i) => {
    const pure = owners[i] >= 0;
    const dot = svg(
      "circle",
      { cx: x(i), cy: y(value), r: pure ? 5 : 4, class: pure ? "pure" : "open" },
      svg(
        "title",
        {},
        `eigenfunction ${i + 1}, eigenvalue ${short(value)}: ${pure ? `factor ${owners[i] + 1}` : "product or mixture"}`,
      ),
    );
    if (pure) dot.style.fill = own(owners[i]);
    const name = `function${i + 1}`;
    if (about.columns[name]) {
      for (const [key, value] of [["tabindex", 0], ["role", "button"]]) dot.setAttribute(key, value);
      dot.addEventListener("click", () => colourBy(name));
      dot.addEventListener("keydown", (event) => event.key === "Enter" && colourBy(name));
    }
    return dot;
  });
  const names = [
    svg(
      "text",
      { x: (LEFT + WIDTH) / 2, y: HEIGHT - 12, "text-anchor": "middle" },
      `eigenfunctions 1 to ${eigenvalues.length}`,
    ),
    svg("text", { transform: `translate(20 ${HEIGHT / 2}) rotate(-90)`, "text-anchor": "middle" }, "eigenvalue"),
  ];
  byId("spectrum").replaceChildren(
    legend(about),
    html(
      "div",
      { class: "wide", tabindex: 0, role: "group", "aria-label": "Spectrum" },
      svg(
        "svg",
        { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": text },
        ...scale,
        ...dots,
        ...names,
      ),
    ),
    html("p", {}, text),
  );
}

function legend(about) {
  return html(
    "p",
    {},
    ...about.factors.map((factor, f) => {
      const name = html("span", { class: "swatch" }, `factor ${f + 1}, ${factor.shape} \u00a0 `);
      name.style.setProperty("--own", own(f));
      return name;
    }),
  );
}

async function angles() {
  const { values, sizes } = await read("angles");
  const place = byId("angles");
  if (!values.length) {
    place.replaceChildren(html("p", {}, "The factors of this run have no eigenfunctions of the data's own spectrum."));
    return;
  }
  const side = 460 / values.length;
  const left = 80;
  const cells = values.flatMap((row, i) =>
    row.map((value, j) =>
      svg(
        "rect",
        {
          class: "cell",
          x: left + j * side,
          y: i * side,
          width: side,
          height: side,
          "fill-opacity": Math.min(Math.max(value, 0), 1),
        },
        svg("title", {}, `${i + 1}, ${j + 1}: ${value.toFixed(2)}`),
      ),
    ),
  );
  const edges = sizes.reduce((out, size) => [...out, out.at(-1) + size], [0]);
  const lines = edges
    .slice(1, -1)
    .flatMap((edge) => [
      svg("path", { class: "edge", d: `M${left} ${edge * side}H${left + 460}M${left + edge * side} 0V460` }),
    ]);
  const names = sizes.map((size, f) =>
    svg("text", { x: left - 8, y: (edges[f] + size / 2) * side + 4, "text-anchor": "end" }, `factor ${f + 1}`),
  );
  const block = (f, g) =>
    mean(values.slice(edges[f], edges[f + 1]).flatMap((row) => row.slice(edges[g], edges[g + 1])));
  const across = sizes.flatMap((_, f) =>
    sizes.map((__, g) => (f < g ? `factors ${f + 1} and ${g + 1}: ${block(f, g).toFixed(3)}` : null)).filter(Boolean),
  );
  const text = across.length ? `Mean between different factors: ${across.join("; ")}.` : "There is one factor only.";
  place.replaceChildren(
    svg(
      "svg",
      { class: "chart", viewBox: "0 0 560 470", role: "img", "aria-label": text },
      svg("rect", { class: "paper", x: left, y: 0, width: 460, height: 460 }),
      ...cells,
      ...lines,
      ...names,
    ),
    html("p", {}, text),
  );
  place.querySelector("svg").style.maxWidth = "36rem";
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The report's own words and tables. */
async function evidence() {
  byId("evidence").innerHTML = (await read("evidence")).html;
}

const PAGES = { spectrum, angles, evidence };
const made = new Set();

/** Show one page and hide the others; a page is requested when it is first shown. */
export async function showPage(name, about, colourBy) {
  byId("selection").hidden = name !== "explore";
  for (const section of document.querySelectorAll("[data-shown]")) section.hidden = section.dataset.shown !== name;
  for (const button of document.querySelectorAll("[data-page]")) {
    if (button.dataset.page === name) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
  }
  if (!(name in PAGES) || made.has(name)) return;
  made.add(name);
  await PAGES[name](about, colourBy).catch((error) => {
    made.delete(name);
    throw error;
  });
}
