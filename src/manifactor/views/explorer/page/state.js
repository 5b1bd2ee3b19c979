// The state of the page, written to and restored from the fragment of its address.

import { short } from "./elements.js";

/** The initial state of a run. */
export function initial(about) {
  const named = (group) => Object.keys(about.columns).filter((name) => about.columns[name].group === group);
  // Two angles tell the place on a torus; its axes do not.
  const places = [...named("angles"), ...named("places")];
  return {
    page: "explore",
    at: about.factors.map(({ start }) => start),
    factor: 0,
    // The molecule is shown in one state.
    mode: about.preview.views ? "held" : "matched",
    source: Object.keys(about.preview.sources)[0] ?? "",
    view: about.preview.views?.best[0] ?? [0, 0],
    count: about.preview.count,
    axis: 0,
    depth: 0.5,
    tool: "lasso",
    colour: places[0],
    xy: [places[0], places[1] ?? "factor1_confidence"],
    ranges: {},
    lassos: {},
    of: "place", // of what the mean is shown
    kept: null, // the selection whose mean is subtracted
    side: 5,
    grid: [0, 1].filter((f) => f < about.factors.length),
  };
}

/** The name of a factor, counted from 0. */
export const called = (about, f) => about.names[f] || `factor ${f + 1}`;

/** A number as it stands in links, so that a link selects what was selected. */
export const rounded = (value) => Number(value.toPrecision(6));

const PAIR = "~"; // between the names of two columns

/** The state as text: only what differs from the initial state. */
export function written(state, first) {
  const out = new URLSearchParams();
  for (const name of ["page", "factor", "mode", "source", "count", "axis", "depth", "tool", "colour", "of", "side"]) {
    if (state[name] !== first[name]) out.set(name, state[name]);
  }
  if (String(state.at) !== String(first.at))
    out.set("at", state.at.map((place) => place.map(rounded).join("_")).join(","));
  if (String(state.view) !== String(first.view)) out.set("view", state.view.map(rounded).join("_"));
  if (String(state.xy) !== String(first.xy)) out.set("xy", state.xy.join(PAIR));
  if (String(state.grid) !== String(first.grid)) out.set("grid", state.grid.join(PAIR));
  writeSelection(out, state);
  if (state.kept) {
    const kept = new URLSearchParams();
    writeSelection(kept, state.kept);
    out.set("kept", kept.toString());
  }
  return out.toString();
}

function writeSelection(out, { ranges, lassos }) {
  for (const [name, ends] of Object.entries(ranges)) out.append("range", [name, ...ends.map(rounded)].join(PAIR));
  for (const [pair, polygon] of Object.entries(lassos)) {
    out.append("lasso", [pair, polygon.map((corner) => corner.map(rounded).join("_")).join(",")].join(PAIR));
  }
}

/** The state that a text describes; invalid parts keep their initial values. */
export function restored(text, about) {
  const state = initial(about);
  const given = new URLSearchParams(text);
  const take = (name, valid, convert = String) => {
    const value = given.has(name) ? convert(given.get(name)) : undefined;
    if (value !== undefined && valid(value)) state[name] = value;
  };
  const known = (name) => Object.hasOwn(about.columns, name);
  const shown = (name) => known(name) && about.columns[name].group !== "";
  const between = (low, high) => (value) => value >= low && value <= high;
  const whole = (low, high) => (value) => Number.isInteger(value) && between(low, high)(value);
  take("page", (name) => ["explore", "grid", "spectrum", "angles", "evidence"].includes(name));
  take("mode", (name) => ["matched", "held"].includes(name));
  take("source", (name) => Object.hasOwn(about.preview.sources, name));
  take("tool", (name) => ["lasso", "box", "zoom"].includes(name));
  take("colour", shown);
  take("factor", whole(0, about.factors.length - 1), Number);
  take("count", whole(1, about.most_averaged), Number);
  take("axis", whole(0, 2), Number);
  take("depth", between(0, 1), Number);
  take("side", whole(2, 12), Number);
  take(
    "grid",
    (pair) => pair.length === state.grid.length && pair.every(whole(0, about.factors.length - 1)),
    (value) => value.split(PAIR).map(Number),
  );
  if (given.has("kept")) state.kept = readSelection(new URLSearchParams(given.get("kept")), about);
  take("of", (name) => ["place", "selection", ...(state.kept ? ["difference"] : [])].includes(name));
  take(
    "xy",
    (pair) => pair.length === 2 && pair.every(shown),
    (value) => value.split(PAIR),
  );
  take(
    "view",
    (view) => view.length === 2 && Math.abs(view[0]) <= 360 && between(0, 180)(view[1]),
    (value) => value.split("_").map(Number),
  );
  const on = ({ limits }, place) => place.length === limits.length && place.every(Number.isFinite);
  const fits = (at) => at.length === about.factors.length && about.factors.every((factor, f) => on(factor, at[f]));
  take("at", fits, (value) => value.split(",").map((place) => place.split("_").map(Number)));
  const inside = (value, [low, high]) => Math.min(Math.max(value, low), high); // what rounding moved out
  state.at = state.at.map((place, f) => place.map((value, axis) => inside(value, about.factors[f].limits[axis])));
  return { ...state, ...readSelection(given, about) };
}

function readSelection(given, about) {
  const [ranges, lassos] = [{}, {}];
  const known = (name) => Object.hasOwn(about.columns, name);
  const shown = (name) => known(name) && about.columns[name].group !== "";
  for (const each of given.getAll("range")) {
    const [name, ...ends] = each.split(PAIR);
    const numbers = ends.map(Number);
    if (shown(name) && numbers.length === 2 && numbers.every(sound(about.columns[name]))) ranges[name] = numbers;
  }
  for (const each of given.getAll("lasso")) {
    const [x, y, corners = ""] = each.split(PAIR);
    const polygon = corners.split(",").map((corner) => corner.split("_").map(Number));
    const closed = polygon.length > 2 && polygon.length <= about.most_corners;
    const flat = polygon.every((corner) => corner.length === 2 && corner.every(sound({})));
    if (known(x) && known(y) && closed && flat) lassos[pairOf(x, y)] = polygon;
  }
  return { ranges, lassos };
}

/** Whether a number may be the end of a range of a column. */
export const sound =
  ({ cyclic }) =>
  (value) =>
    Number.isFinite(value) && Math.abs(value) <= (cyclic ? 360 : 1e99);

/** What is wrong with a range of a column, in words; "" if nothing is. */
export function fault({ low, high, cyclic }, ends) {
  if (!ends.every(Number.isFinite)) return "Give two numbers.";
  const [from, to] = ends;
  if (cyclic) return ends.every((each) => Math.abs(each) <= 360) ? "" : "Degrees must lie between -360 and 360.";
  if (from > to) return `${from} is above ${to}: the smaller number comes first.`;
  if (from > high || to < low) return `No sample is there: all lie between ${short(low)} and ${short(high)}.`;
  return "";
}

export const pairOf = (x, y) => [x, y].join(PAIR);

/** The names in a pair. */
export const named = (pair) => pair.split(PAIR);

/** The conditions of the state's selection, as the server takes them. */
export function conditions(state) {
  const ranges = Object.entries(state.ranges).map(([column, [low, high]]) => ({ column, low, high }));
  const lassos = Object.entries(state.lassos).map(([pair, polygon]) => {
    const [x, y] = named(pair);
    return { x, y, polygon };
  });
  return [...ranges, ...lassos];
}
