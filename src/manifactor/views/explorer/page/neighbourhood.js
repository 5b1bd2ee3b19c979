// The neighbourhood of the chosen place: a mean image, slice or features, and the nearest samples.

import { described, seen as seenFrom } from "./direction.js";
import { byId, html, short, svg, ticks, whole } from "./elements.js";
import { called } from "./state.js";

/** Words for a distance on a factor. */
const within = (factor, reach, [at]) =>
  factor.topology === "circle"
    ? `${short(reach, 10)}° of ${Math.round(at)}°`
    : factor.topology === "interval"
      ? `${short(reach, 0.5)} of ${short(at, 0.5)}`
      : `${short(reach)} of the place chosen`;

export function showNear(found, about, state) {
  const said = found.counts ? selected : (CAPTIONS[state.source || about.preview.kind] ?? caption);
  byId("caption").textContent = said(found, about, state);
  byId("picture").hidden = !found.image;
  byId("singles-title").textContent = state.of === "place" ? "Nearest samples" : "Samples of the selection";
  byId("singles").hidden = !found.samples;
  if (found.image) showImage(found.image, about, state);
  else if (found.cone) byId("seen").replaceChildren();
  if (found.mean) showFeatures(found, about);
  if (found.samples)
    byId("samples").replaceChildren(...(found.thumbnail_shape ? thumbnails(found, about) : [table(found, about)]));
}

/** What a mean of a selection is of, or a difference of two. */
function selected({ counts, most }, about, state) {
  const [one, other] = counts.map((count) => {
    const drawn = count > most ? `${whole(most)} of ` : "";
    return `${drawn}${whole(count)} ${things(about.preview, state)}`;
  });
  if (!other) return `Mean of ${one} in the selection.`;
  const scale = about.preview.kind === "features" ? "" : " Red: more in the selection; blue: less; white: equal.";
  return `Mean of ${one} in the selection, less the mean of ${other} in the one that was kept.${scale}`;
}

const CAPTIONS = {
  nothing: (_, about) => about.preview.why,
  molecule: (_, about, state) => described(about.preview.views, state.view),
  volumes: (found, about, state) => (found.volume ? volume(found.volume, state) : caption(found, about, state)),
};

const things = ({ kind }, { source }) => (["images", "volumes"].includes(source || kind) ? source || kind : "samples");

const volume = ({ name, place, factor, of }, { view }) =>
  `${name}, the nearest of ${whole(of)} volumes, at ${place} on factor ${factor}, seen from ${seenFrom(view)}.`;

/** Which images were averaged, where a direction is chosen. */
function from({ width, images, corrected }, { view }) {
  const ctf = corrected ? ", corrected for the CTF" : "";
  return ` of ${whole(images)} within ${width}° of ${seenFrom(view)} (mirrored from behind)${ctf}`;
}

/** How many samples the mean is of, how near they are, and what of the other factors. */
function caption(found, about, state) {
  const near = Object.entries(found.reach).map(
    ([f, reach]) => `within ${within(about.factors[f], reach, state.at[f])} on ${called(about, Number(f))}`,
  );
  const cut = found.slice ? `Slice ${found.slice} of the mean` : "Mean";
  const one = about.factors.length < 3 ? "factor" : "factors";
  const alone = state.mode === "held" || about.factors.length === 1;
  const others = alone ? "" : `, spread over the other ${one} as all samples are`;
  const note = about.preview.why ? ` ${about.preview.why}` : "";
  const cone = found.cone ? from(found.cone, state) : "";
  if (!found.count) return `No images${cone}. Choose another direction.${note}`;
  return `${cut} of ${whole(found.count)} ${things(about.preview, state)}${cone}, ` +
    `nine in ten ${near.join(", ")}${others}.${note}`;
}

function showImage(address, about, state) {
  const seen = byId("seen");
  const bar = state.source ? about.preview.bars[state.source] : about.preview.bar;
  if (seen.querySelector("img") === null || seen.dataset.source !== state.source) frame(seen, bar);
  seen.dataset.source = state.source;
  const where = state.at.map((at, f) => `${at.map((value) => short(value, 1)).join(", ")} on ${called(about, f)}`);
  for (const each of document.querySelectorAll(".framed")) each.classList.toggle("signed", state.of === "difference");
  for (const image of document.querySelectorAll(".framed img")) {
    image.src = address;
    const of = state.of === "place" ? `at ${where.join(" and ")}` : `of the ${state.of}`;
    image.alt = `Mean of ${things(about.preview, state)} ${of}`;
  }
}

/** Frames for the image, with a scale bar: one in the page, and one in a dialog that a click opens. */
function frame(seen, bar) {
  const parts = () => [html("img"), ...(bar ? [scaleBar(bar)] : [])];
  const opener = html("button", { type: "button", class: "framed", title: "Enlarge" }, ...parts());
  const large = byId("large");
  large.querySelector(".framed").replaceChildren(...parts());
  opener.addEventListener("click", () => large.showModal());
  byId("smaller").onclick = () => large.close();
  seen.replaceChildren(opener);
}

function scaleBar({ length, share }) {
  const bar = html("span", { class: "bar" }, `${length} Å`);
  bar.style.width = `${100 * share}%`;
  return bar;
}

const WIDTH = 320;
const HEIGHT = 220;
const LEFT = 44;

const LETTER = 7; // width of a letter

/** The name of a column of the samples, counted from 0; the lists of the page have only the first ones. */
export const columnName = (about, j) => about.columns[`column ${j + 1}`]?.label ?? `column ${j + 1}`;

/** A name that fits into so much room; a column without a name of its own has its number. */
function fitted(name, room) {
  const own = name.replace(/^column (?=\d+$)/, "");
  const most = Math.max(2, Math.floor(room / LETTER));
  return own.length > most ? `${own.slice(0, most - 1)}…` : own;
}

/** Means and spreads of the columns, on a scale that does not move. */
function showFeatures(found, about) {
  const largest = Math.max(...found.mean.map(Math.abs));
  const [low, high] = found.counts?.length === 2 ? [-largest, largest] : about.preview.limits;
  const n = found.mean.length;
  const x = (j) => LEFT + ((j + 0.5) * (WIDTH - LEFT)) / n;
  const y = (value) => 8 + ((HEIGHT - 34) * (high - value)) / (high - low || 1);
  const at = (values) => values.map((value, j) => `${x(j).toFixed(1)},${y(value).toFixed(1)}`);
  const upper = at(found.mean.map((mean, j) => mean + found.spread[j]));
  const lower = at(found.mean.map((mean, j) => mean - found.spread[j]));
  const few = n <= 12;
  const names = found.mean.map((_, j) => columnName(about, j));
  const parts = few
    ? found.mean.flatMap((mean, j) => [
        svg("path", {
          class: "axis",
          d: `M${x(j)} ${y(mean - found.spread[j])}V${y(mean + found.spread[j])}`,
          "stroke-width": 6,
        }),
        svg("circle", { class: "dot", cx: x(j), cy: y(mean), r: 5 }, svg("title", {}, names[j])),
        svg(
          "text",
          { x: x(j), y: HEIGHT - 10, "text-anchor": "middle" },
          fitted(names[j], (WIDTH - LEFT) / n),
          svg("title", {}, names[j]),
        ),
      ])
    : [
        svg("polygon", { class: "band", points: [...upper, ...lower.reverse()].join(" ") }),
        svg("polyline", { class: "mean", points: at(found.mean).join(" ") }),
        svg("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 10, "text-anchor": "middle" }, `columns 1 to ${n}`),
      ];
  const scale = ticks(low, high - low || 1).flatMap(([value, text]) => [
    svg("path", { class: "axis", d: `M${LEFT} ${y(value)}H${WIDTH}`, "stroke-dasharray": "2 3" }),
    svg("text", { x: LEFT - 5, y: y(value) + 4, "text-anchor": "end" }, text),
  ]);
  const label = `Means of the first columns: ${found.mean
    .slice(0, 12)
    .map((mean, j) => `${names[j]} ${short(mean)}`)
    .join(", ")}`;
  byId("seen").replaceChildren(
    svg(
      "svg",
      { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
      ...scale,
      ...parts,
    ),
  );
}

const sure = (deviations, i, factor) =>
  deviations ? ` ± ${factor.topology === "circle" ? `${short(deviations[i], 10)}°` : short(deviations[i], 0.5)}` : "";

export const placed = (place, factor) =>
  factor.topology === "circle"
    ? `${Math.round(place)}°`
    : [place]
        .flat()
        .map((value) => short(value, 0.5))
        .join(", ");

export function thumbnails(found, about) {
  const names = found.samples.map((sample, i) => found.names[i] ?? whole(sample));
  const drawn = levelPictures(found, (i) => `Image ${names[i]}`);
  return found.samples.map((_, i) => {
    const where = about.factors.map((factor, f) => placed(found.places[f][i], factor)).join(" · ");
    return html(
      "figure",
      {},
      drawn[i],
      html("figcaption", {}, `${names[i]}: ${where}`),
    );
  });
}

/** Canvases of the thumbnails of an answer, of one grey or three colours a pixel; `name(i)` describes each. */
export function levelPictures({ thumbnail_shape: [height, width, channels = 1], thumbnails }, name) {
  const bytes = Uint8Array.from(atob(thumbnails), (character) => character.charCodeAt(0));
  const size = width * height;
  return Array.from({ length: bytes.length / (size * channels) }, (_, i) => {
    const canvas = html("canvas", { width, height, role: "img", "aria-label": name(i) });
    const pixels = new ImageData(width, height);
    for (let k = 0; k < 4 * size; k++) {
      const channel = Math.min(k % 4, channels - 1);
      pixels.data[k] = k % 4 === 3 ? 255 : bytes[(i * size + (k >> 2)) * channels + channel];
    }
    canvas.getContext("2d").putImageData(pixels, 0, 0);
    return canvas;
  });
}

const SHOWN = 8; // columns of a sample in the table

function table(found, about) {
  const features = found.features ?? [];
  const columns = Array.from(
    { length: Math.min(SHOWN, features[0]?.length ?? 0) },
    (_, j) => columnName(about, j),
  );
  const head = ["sample", ...about.factors.map((_, f) => called(about, f)), ...columns];
  const rows = found.samples.map((sample, i) => [
    whole(sample),
    ...about.factors.map(
      (factor, f) => `${placed(found.places[f][i], factor)}${sure(found.deviations[f], i, factor)}`,
    ),
    ...(features[i] ?? []).slice(0, SHOWN).map((value) => short(value)),
  ]);
  return wide("Numbers of samples as in coordinates.csv, from 0.", head, rows);
}

/** A table in a box of its own to scroll in. */
function wide(caption, head, rows) {
  const cells = (row) => row.map((cell, i) => html(i ? "td" : "th", i ? {} : { scope: "row" }, cell));
  return html(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": caption },
    html(
      "table",
      {},
      html("caption", {}, caption),
      html("thead", {}, html("tr", {}, ...head.map((cell) => html("th", { scope: "col" }, cell)))),
      html("tbody", {}, ...rows.map((row) => html("tr", {}, ...cells(row)))),
    ),
  );
}
