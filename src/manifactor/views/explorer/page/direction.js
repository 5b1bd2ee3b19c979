// The direction from which the molecule is seen: half of the sphere, seen from above, and two sliders.
//
// Areas are right on the disk (Lambert's azimuthal map); tilt 0 is its middle, tilt 90 its edge, rot 0 to the right.
// A direction and its opposite, whose images are mirrored, are one point.

import { dark, drawBar, map } from "./colours.js";
import { byId, html, short, whole } from "./elements.js";

const PIXELS = 180;
const DEGREE = Math.PI / 180;

/** The unit vector of rot and tilt. */
const vector = ([rot, tilt]) => [
  Math.sin(tilt * DEGREE) * Math.cos(rot * DEGREE),
  Math.sin(tilt * DEGREE) * Math.sin(rot * DEGREE),
  Math.cos(tilt * DEGREE),
];

/** The direction of a point of the unit disk. */
function unprojected(x, y) {
  const tilt = 2 * Math.asin(Math.hypot(x, y) / Math.SQRT2);
  return [Math.atan2(y, x) / DEGREE, tilt / DEGREE];
}

/** The point of a direction on the unit disk. */
function projected([rot, tilt]) {
  const behind = tilt > 90;
  const radius = Math.SQRT2 * Math.sin(((behind ? 180 - tilt : tilt) / 2) * DEGREE);
  const turn = (behind ? rot + 180 : rot) * DEGREE;
  return [radius * Math.cos(turn), radius * Math.sin(turn)];
}

/** The cell of a direction. */
function cellOf(directions, view) {
  const [x, y, z] = vector(view);
  let best = 0;
  let most = -1;
  directions.forEach(([a, b, c], i) => {
    const near = Math.abs(a * x + b * y + c * z);
    if (near > most) [best, most] = [i, near];
  });
  return best;
}

export const seen = ([rot, tilt]) => `rot ${Math.round(rot)}°, tilt ${Math.round(tilt)}°`;

/** What is known of the direction, in words. */
export function described({ directions, counts, deviations, unknown, expected }, view) {
  const cell = cellOf(directions, view);
  const start = `The molecule at the chosen coordinates, seen from ${seen(view)}, without CTF.`;
  if (!counts[cell]) return `${start} No particle is seen from there.`;
  const each = deviations.map((of, f) =>
    of[cell] === null ? `nothing of factor ${f + 1}` : `${Math.round(100 * of[cell])}% of factor ${f + 1}`,
  );
  const nothing = `${Math.round(100 * unknown)}% if images show nothing.`;
  const told = expected
    ? `A coordinate that one of the ${whole(counts[cell])} images from there tells deviates by about`
    : `Coordinates of its ${whole(counts[cell])} particles deviate by`;
  return `${start} ${told} ${each.join(" and ")}; ${nothing}`;
}

/** Build the picker; `moved` is told each new [rot, tilt]. Returns show(view). */
export function picker(views, moved) {
  let view = [0, 0];
  const disk = byId("disk");
  const cells = nearest(views.directions);
  const shade = byId("shade");
  shade.append(
    ...views.deviations.map((_, f) => html("option", { value: f }, `deviation on factor ${f + 1}`)),
    html("option", { value: "counts" }, "number of particles"),
  );
  const paint = () => {
    const values = shade.value === "counts" ? views.counts : views.deviations[shade.value];
    const most = Math.max(...values, 1e-9);
    draw(disk, cells, values, most);
    drawBar(byId("shades"), false);
    byId("most").textContent = short(most);
  };
  shade.addEventListener("change", paint);
  dark.addEventListener("change", paint);
  const fields = ["rot", "tilt"].map((name, axis) => {
    const both = [byId(name), byId(`${name}-number`)];
    for (const input of both)
      input.addEventListener("input", () => {
        if (input.value !== "" && input.validity.valid) moved(view.with(axis, Number(input.value)));
      });
    return both;
  });
  const pick = (event) => {
    const box = disk.getBoundingClientRect();
    const x = (2 * (event.clientX - box.left)) / box.width - 1;
    const y = 1 - (2 * (event.clientY - box.top)) / box.height;
    const outside = Math.max(Math.hypot(x, y), 1);
    moved(unprojected(x / outside, y / outside).map(Math.round));
  };
  disk.addEventListener("pointerdown", (event) => {
    disk.setPointerCapture(event.pointerId);
    pick(event);
  });
  disk.addEventListener("pointermove", (event) => {
    if (disk.hasPointerCapture(event.pointerId)) pick(event);
  });
  paint();
  return (given) => {
    view = given;
    fields.forEach((both, axis) => {
      for (const input of both) if (input !== document.activeElement || input.type === "range") input.value = view[axis];
    });
    const [x, y] = projected(view);
    for (const ring of byId("globe").querySelectorAll("circle")) {
      ring.setAttribute("cx", x);
      ring.setAttribute("cy", -y);
      ring.classList.toggle("behind", view[1] > 90);
    }
    disk.setAttribute("aria-label", `Half of the sphere of directions; chosen: ${seen(view)}`);
  };
}

/** The cell of every pixel of the disk; -1 outside. */
function nearest(directions) {
  return Int16Array.from({ length: PIXELS ** 2 }, (_, i) => {
    const x = (2 * ((i % PIXELS) + 0.5)) / PIXELS - 1;
    const y = 1 - (2 * (Math.floor(i / PIXELS) + 0.5)) / PIXELS;
    return Math.hypot(x, y) > 1 ? -1 : cellOf(directions, unprojected(x, y));
  });
}

function draw(disk, cells, values, most) {
  disk.width = disk.height = PIXELS;
  const colours = map(false);
  const image = new ImageData(PIXELS, PIXELS);
  cells.forEach((cell, i) => {
    if (cell < 0 || values[cell] === null) return;
    const shade = Math.round((255 * values[cell]) / most);
    image.data.set(colours.subarray(4 * shade, 4 * shade + 4), 4 * i);
  });
  disk.getContext("2d").putImageData(image, 0, 0);
}
