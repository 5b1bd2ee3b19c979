// The pictures of all samples: one for each factor, and one of any two columns together.
//
// `app` has the run (about), the state of the page, and what to call when it changes: moved, showPlaces, showSelection.

import { Cloud } from "./cloud.js";
import { own } from "./colours.js";
import { headed } from "./controls.js";
import { byId, html, whole } from "./elements.js";
import { column } from "./server.js";
import { pairOf, rounded } from "./state.js";

const describe = (about, x, y) => `${whole(about.shown)} samples, ${x} across and ${y} upwards`;

const clamped = (value, [low, high]) => Math.min(Math.max(value, low), high);

/** A picture in a card of its own. */
function card(title, ...more) {
  const plot = html("div", { class: "plot" });
  const head = html("div", { class: "title" }, html("h3", {}, title), ...more);
  byId("clouds").append(html("section", { class: "cloud" }, head, plot));
  return plot;
}

function heardBy(app, view, picked) {
  const lassoed = (polygon) => {
    const every = Math.ceil(polygon.length / app.about.most_corners);
    app.state.lassos[view.pair()] = polygon.filter((_, i) => i % every === 0).map((corner) => corner.map(rounded));
    app.showSelection();
  };
  return { tool: () => app.state.tool, lassoed, picked, hovered: app.hovered };
}

/** The picture of a factor; what is clicked becomes the place chosen on it. */
export function factorView(app, f) {
  const factor = app.about.factors[f];
  const { x, y } = factor.view;
  const plot = card(headed(app.about, f));
  plot.parentElement.style.setProperty("--own", own(f));
  const view = { pair: () => pairOf(x, y), points: () => Promise.all([column(x), column(y)]) };
  const picked = async (across, up) => app.moved(f, await PLACES[factor.topology](factor, across, up, view.cloud));
  view.cloud = new Cloud(plot, factorSpec(app.about, factor), heardBy(app, view, picked));
  view.mark = () => MARKS[factor.topology](app.state.at[f], app.about);
  return view;
}

function factorSpec(about, factor) {
  const [x, y] = [factor.view.x, factor.view.y].map((name) => {
    const axis = about.columns[name];
    return axis.group === "confidence" ? { ...axis, label: "confidence" } : axis;
  });
  const round = factor.topology === "circle";
  const label = round
    ? `${whole(about.shown)} samples around a circle, confidence outwards`
    : describe(about, x.label, y.label);
  return { x, y, round, equal: factor.topology !== "interval", label };
}

/** The place that a point of a factor's picture stands for. */
const PLACES = {
  circle: (_, across, up) => [((Math.atan2(up, across) * 180) / Math.PI + 360) % 360],
  interval: (_, across) => [clamped(across, [0, 1])],
  other: async (factor, across, up, cloud) => {
    const i = cloud.nearest(across, up);
    const columns = await Promise.all(factor.columns.map(column));
    return columns.map((values, axis) => clamped(values[i], factor.limits[axis]));
  },
};

/** How the place chosen on a factor is marked in its picture. */
const MARKS = {
  circle: ([angle], about) => {
    const turn = (angle * Math.PI) / 180;
    return { lines: [[about.inner, 1.02].map((radius) => [radius * Math.cos(turn), radius * Math.sin(turn)])] };
  },
  interval: ([at]) => ({ lines: [upright(at, { low: 0, high: 1 })] }),
  other: ([x, y = 1]) => ({ rings: [[x, y]] }),
};

const upright = (x, { low, high }) => [low, high].map((y) => [x, y]);
const level = (y, { low, high }) => [low, high].map((x) => [x, y]);

/** Where a column's factor and axis are, if it is a place. */
function placeOf(about, name) {
  const f = about.factors.findIndex(({ columns }) => columns.includes(name));
  return f < 0 ? null : { f, axis: about.factors[f].columns.indexOf(name) };
}

/** The picture of two columns, which can be chosen; `guarded` makes work that may fail safe. */
export function jointView(app, guarded) {
  const { about } = app;
  const choices = ["across", "upwards"].map((name) => html("select", { "aria-label": name }, ...options(about)));
  const plot = card("Together", html("span", {}, choices[0], " × ", choices[1]));
  plot.parentElement.classList.add("joint");
  const view = { pair: () => pairOf(...app.state.xy), points: () => Promise.all(app.state.xy.map(column)) };
  const spec = () => {
    const [x, y] = app.state.xy.map((name) => about.columns[name]);
    return { x, y, label: describe(about, x.label, y.label) };
  };
  view.cloud = new Cloud(
    plot,
    spec(),
    heardBy(app, view, (...at) => pickTogether(app, at)),
  );
  view.mark = () => cross(app);
  view.show = guarded(async () => {
    choices.forEach((choice, i) => (choice.value = app.state.xy[i]));
    const points = await view.points();
    view.cloud.respec(spec());
    view.cloud.setPoints(...points);
    app.showPlaces();
    app.showSelection();
  });
  choices.forEach((choice, i) =>
    choice.addEventListener("change", () => {
      app.state.xy = app.state.xy.with(i, choice.value);
      view.show();
    }),
  );
  return view;
}

function pickTogether(app, at) {
  app.state.xy.forEach((name, i) => {
    const place = placeOf(app.about, name);
    if (!place) return;
    const { low, high } = app.about.columns[name];
    app.moved(place.f, app.state.at[place.f].with(place.axis, clamped(at[i], [low, high])));
  });
}

function cross(app) {
  const [x, y] = app.state.xy.map((name) => app.about.columns[name]);
  const [across, up] = app.state.xy.map((name) => {
    const place = placeOf(app.about, name);
    return place && app.state.at[place.f][place.axis];
  });
  return { lines: [...(across === null ? [] : [upright(across, y)]), ...(up === null ? [] : [level(up, x)])] };
}

const GROUPS = { places: "Coordinates", angles: "Angles", confidence: "Confidence", deviation: "Deviation", particles: "Particles", samples: "Samples", functions: "Eigenfunctions" };

/** All columns with a name, under headings, to choose from. */
export function options(about) {
  const named = Object.entries(about.columns);
  const choices = (group) =>
    named
      .filter(([, found]) => found.group === group)
      .map(([name, { label }]) => html("option", { value: name }, label));
  return Object.entries(GROUPS)
    .map(([group, title]) => html("optgroup", { label: title }, ...choices(group)))
    .filter((group) => group.children.length);
}
