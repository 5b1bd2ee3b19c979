// Means at even steps along two factors, beside each other.

import { byId, html, short, svg } from "./elements.js";
import { columnName, levelPictures } from "./neighbourhood.js";
import { ask, download } from "./server.js";
import { called } from "./state.js";

const coordinate = (factor, value) => (factor.topology === "circle" ? `${Math.round(value)}°` : short(value, 1));

/** Show the grid of the state's two factors; `chosen(at)` is told the place of a cell that is clicked. */
export async function grid(about, state, near, chosen) {
  const lines = about.factors.flatMap(({ topology }, f) => (topology === "other" ? [] : [f]));
  const place = byId("grid");
  byId("grid-tools").hidden = !lines.length || about.preview.kind === "nothing";
  if (byId("grid-tools").hidden) {
    byId("about-grid").textContent = "Means along intervals and circles; this run has none to show.";
    return;
  }
  const known = state.grid.map((f) => (lines.includes(f) ? f : lines[0]));
  if (lines.length > 1 && known[0] === known[1]) known[1] = lines.find((f) => f !== known[0]);
  const [up, across] = lines.length > 1 ? known : [null, lines[0]];
  byId("grid-up").parentElement.hidden = up === null;
  [byId("grid-up"), byId("grid-across")].forEach((choice, i) => {
    choice.replaceChildren(...lines.map((f) => html("option", { value: f }, called(about, f))));
    choice.value = [up, across][i];
  });
  const factors = up === null ? [across] : [up, across];
  const found = await ask("grid", { ...near, factors, side: state.side });
  const at = (i) => {
    const [row, column] = [Math.floor(i / state.side), i % state.side];
    const values = up === null ? [found.along[0][column]] : [found.along[0][row], found.along[1][column]];
    return factors.map((f, k) => [f, values[k]]);
  };
  const where = ([f, value]) => `${called(about, f)} ${coordinate(about.factors[f], value)}`;
  const said = (i) => at(i).map(where).join(", ");
  const drawn = found.means ? bars(found.means, about) : levelPictures(found, said);
  const cells = drawn.map((picture, i) => {
    const far = found.far[i] ? "; few samples are near" : "";
    const cell = html("button", { type: "button", class: "cell", title: `${said(i)}${far}` }, picture);
    cell.classList.toggle("far", found.far[i]);
    cell.addEventListener("click", () => chosen(at(i).reduce((all, [f, value]) => all.with(f, [value]), state.at)));
    return cell;
  });
  const label = (f, value) => html("span", { class: "step" }, coordinate(about.factors[f], value));
  const rows = Array.from({ length: cells.length / state.side }, (_, row) => [
    up === null ? html("span") : label(up, found.along[0][row]),
    ...cells.slice(row * state.side, (row + 1) * state.side),
  ]).reverse(); // upwards
  const feet = [html("span"), ...found.along.at(-1).map((value) => label(across, value))];
  const table = html("div", { class: "cells" }, ...rows.flat(), ...feet);
  table.style.setProperty("--side", state.side);
  place.replaceChildren(table);
  place.dataset.asked = JSON.stringify([factors, state.side]);
  const molecule = about.preview.views && state.source !== "images";
  const each = molecule ? "The molecule" : `Means of about ${found.count} samples`;
  const upwards = up === null ? "" : ` across and ${called(about, up)} upwards`;
  const others = about.factors.length > 2 ? ", the others as chosen" : "";
  byId("about-grid").textContent =
    `${each} along ${called(about, across)}${upwards}${others}, on one scale. Faint: few samples are near. ` +
    "A click shows the place.";
  const save = byId("grid-picture");
  save.hidden = Boolean(found.means);
  save.onclick = () => savePicture(rows, feet, `${about.name}-grid.png`);
}

/** Means of the first columns as bars from 0. */
function bars(means, about) {
  const [low, high] = about.preview.limits;
  const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
  return means.map((values) => {
    const wide = 100 / values.length;
    const drawn = values.map((value, j) => {
      const tall = (50 * Math.abs(value)) / most;
      const box = { x: j * wide + 0.1 * wide, width: 0.8 * wide, y: value > 0 ? 50 - tall : 50, height: tall };
      return svg("rect", box, svg("title", {}, `${columnName(about, j)} ${short(value)}`));
    });
    return svg("svg", { viewBox: "0 0 100 100", "aria-hidden": "true" }, svg("path", { d: "M0 50H100" }), ...drawn);
  });
}

/** Save the grid as it stands as a picture. */
function savePicture(rows, feet, name) {
  const tiles = rows.map((row) => row.slice(1).map((cell) => cell.querySelector("canvas")));
  const [{ width, height }, gap, foot, side] = [tiles[0][0], 2, 20, 48];
  const canvas = html("canvas", {
    width: side + tiles[0].length * (width + gap),
    height: tiles.length * (height + gap) + foot,
  });
  const context = canvas.getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  Object.assign(context, { fillStyle: "#000", font: "13px sans-serif", textAlign: "center", textBaseline: "middle" });
  tiles.forEach((row, i) => {
    row.forEach((tile, j) => context.drawImage(tile, side + j * (width + gap), i * (height + gap)));
    context.fillText(rows[i][0].textContent, side / 2, (i + 0.5) * (height + gap));
  });
  feet.slice(1).forEach((text, j) =>
    context.fillText(text.textContent, side + (j + 0.5) * (width + gap), canvas.height - foot / 2),
  );
  canvas.toBlob((content) => download(content, name));
}
