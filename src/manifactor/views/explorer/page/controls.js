// For every factor a dial or sliders for the chosen place, a button that moves it by itself, and a range to select.

import { own } from "./colours.js";
import { html, short, svg } from "./elements.js";
import { fault } from "./state.js";

const FRAMES = 48; // of one way along a factor
const PAUSE = 120; // milliseconds between two of them

/**
 * The card of a factor, with show(place) and showRange(range).
 * `heard`: moved(place), ranged([low, high] or null), renamed(name), movie().
 */
export function control(number, factor, about, heard) {
  const circle = factor.topology === "circle";
  const card = html("section", { class: "factor", "aria-labelledby": `factor${number}` });
  card.style.setProperty("--own", own(number - 1));
  card.append(html("h3", { id: `factor${number}` }, headed(about, number - 1)), named(number, about, heard.renamed));
  if (factor.probability) card.append(html("p", { class: "probability" }, factor.probability));
  let place = factor.start;
  const move = (axis, value) => {
    const [low, high] = factor.limits[axis];
    place = place.with(axis, circle ? ((value % 360) + 360) % 360 : Math.min(Math.max(value, low), high));
    heard.moved(place);
  };
  const shows = factor.limits.map((_, axis) => {
    const row = html("div", { class: "row" });
    card.append(row);
    return (circle ? dial : slider)(row, number, factor, axis, (value) => move(axis, value));
  });
  const row = card.querySelector(".row:not(.name)");
  if (factor.topology !== "other")
    row.append(
      player(
        factor,
        () => place[0],
        (value) => move(0, value),
      ),
    );
  const column = about.columns[factor.columns[0]];
  const range = factor.topology === "other" ? () => {} : ranges(card, number, column, factor, heard.ranged);
  const images = ["images", "volumes", "molecule"].includes(about.preview.kind);
  if (factor.topology !== "other" && images) row.append(filmed(heard.movie));
  const show = (given) => {
    place = given;
    shows.forEach((each, axis) => each(given[axis]));
  };
  return { card, show, showRange: range };
}

/** The heading of a factor, counted from 0. */
export const headed = (about, f) =>
  `Factor ${f + 1}${about.names[f] && ` (${about.names[f]})`}: ${about.factors[f].shape}`;

/** A field for the name of a factor. */
function named(number, about, renamed) {
  const name = html("input", { maxlength: 60, value: about.names[number - 1], placeholder: "what changes along it?" });
  name.addEventListener("change", () => renamed(name.value));
  return html("div", { class: "row name" }, html("label", {}, "Name ", name));
}

function field(name, [low, high], circle) {
  return html("input", { type: "number", "aria-label": name, min: circle ? -360 : low, max: high, step: "any" });
}

function slider(row, number, factor, axis, moved) {
  const limits = factor.limits[axis];
  const span = limits[1] - limits[0];
  const name = `place on factor ${number}${factor.limits.length > 1 ? `, axis ${axis + 1}` : ""}`;
  const slide = html("input", {
    type: "range",
    class: "slide",
    "aria-label": name,
    min: limits[0],
    max: limits[1],
    step: span / 200 || "any",
  });
  const exact = field(`${name}, as a number`, limits);
  slide.addEventListener("input", () => moved(Number(slide.value)));
  exact.addEventListener("change", () => exact.value !== "" && moved(Number(exact.value)));
  row.append(...(factor.limits.length > 1 ? [`axis ${axis + 1}`] : []), slide, exact);
  return (value) => {
    slide.value = value;
    exact.value = short(value, span / 10);
  };
}

const KEYS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 30, PageDown: -30 };

function dial(row, number, factor, axis, moved) {
  const name = `place on factor ${number}, degrees`;
  const hand = svg("line", { x1: 0, y1: 0 });
  const knob = svg("circle", { class: "knob", r: 8 });
  const text = svg("text", { y: 5 });
  const face = svg(
    "svg",
    {
      class: "dial",
      viewBox: "-50 -50 100 100",
      role: "slider",
      tabindex: 0,
      "aria-label": name,
      "aria-valuemin": 0,
      "aria-valuemax": 360,
    },
    svg("circle", { r: 40 }),
    hand,
    knob,
    text,
  );
  const exact = field(`${name}, as a number`, factor.limits[axis], true);
  let now = 0;
  const turn = (event) => {
    const box = face.getBoundingClientRect();
    moved(
      (Math.atan2(box.top + box.height / 2 - event.clientY, event.clientX - box.left - box.width / 2) * 180) / Math.PI,
    );
  };
  face.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    face.setPointerCapture(event.pointerId);
    turn(event);
  });
  face.addEventListener("pointermove", (event) => face.hasPointerCapture(event.pointerId) && turn(event));
  face.addEventListener("keydown", (event) => {
    const step = { Home: -now, End: 359 - now }[event.key] ?? KEYS[event.key] * (event.shiftKey ? 10 : 1);
    if (!Number.isFinite(step) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    moved(now + step);
  });
  exact.addEventListener("change", () => exact.value !== "" && moved(Number(exact.value)));
  row.append(face, exact, "°");
  return (value) => {
    now = value;
    const angle = (value * Math.PI) / 180;
    const [x, y] = [40 * Math.cos(angle), -40 * Math.sin(angle)];
    for (const [key, end] of [
      ["x1", 0.6 * x],
      ["y1", 0.6 * y],
      ["x2", 0.8 * x],
      ["y2", 0.8 * y],
    ])
      hand.setAttribute(key, end);
    knob.setAttribute("cx", x);
    knob.setAttribute("cy", y);
    text.textContent = `${Math.round(value) % 360}°`;
    face.setAttribute("aria-valuenow", Math.round(value));
    face.setAttribute("aria-valuetext", `${Math.round(value)} degrees`);
    exact.value = Math.round(value * 10) / 10;
  };
}

/** A button that moves the place along the factor: round and round a circle, forth and back on an interval. */
function player(factor, place, moved) {
  const [low, high] = factor.limits[0];
  const step = (high - low) / FRAMES;
  let timer = null;
  let way = 1;
  const button = html("button", { type: "button", "aria-pressed": "false", title: "Move along" }, "▶ Play");
  const tick = () => {
    if (factor.topology !== "circle" && (place() + way * step > high || place() + way * step < low)) way = -way;
    moved(place() + way * step);
  };
  button.addEventListener("click", () => {
    timer = timer === null ? setInterval(tick, PAUSE) : (clearInterval(timer) ?? null);
    button.setAttribute("aria-pressed", String(timer !== null));
    button.textContent = timer === null ? "▶ Play" : "❚❚ Pause";
  });
  return button;
}

/** A button that saves a movie along a factor. */
function filmed(saved) {
  const button = html("button", { type: "button" }, "Save as GIF");
  button.addEventListener("click", async () => {
    button.disabled = true; // it takes some seconds
    await saved();
    button.disabled = false;
  });
  return button;
}

function ranges(card, number, column, factor, ranged) {
  const circle = factor.topology === "circle";
  const ends = ["from", "to"].map((end) => field(`select on factor ${number}: ${end}`, factor.limits[0], circle));
  const unit = circle ? "°" : "";
  card.append(
    html("div", { class: "row" }, html("label", {}, "Select", ends[0]), html("label", {}, "to", ends[1], unit)),
  );
  const hint = html("span", { class: "hint", role: "status", hidden: true });
  card.lastElementChild.append(hint);
  ends.forEach((end) =>
    end.addEventListener("input", () => {
      const empty = ends.every((each) => each.value === "" && each.validity.valid);
      const given = ends.map((each) => (each.value === "" ? NaN : Number(each.value)));
      hint.textContent = fault(column, given);
      const whole = hint.textContent === "";
      hint.hidden = empty || whole;
      ends.forEach((each) => each.setAttribute("aria-invalid", String(!hint.hidden)));
      ranged(whole ? given : null);
    }),
  );
  return (range) => {
    if (ends.includes(document.activeElement)) return; // still being typed
    hint.hidden = true;
    ends.forEach((end, i) => {
      end.value = range ? range[i] : "";
      end.setAttribute("aria-invalid", "false");
    });
  };
}
