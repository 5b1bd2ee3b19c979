// A small picture of the sample under the pointer.

import { byId, html, short } from "./elements.js";
import { columnName, thumbnails } from "./neighbourhood.js";
import { ask, latest } from "./server.js";

const KEPT = 200; // answers that are kept
const REST = 60; // milliseconds that the pointer rests before a picture is asked for

/** Returns hovered(number of a drawn sample or null, event). */
export function hoverer(about) {
  const box = byId("hover");
  const known = new Map();
  let now = null;
  let rest;
  const show = latest(async (sample) => {
    try {
      if (!known.has(sample)) known.set(sample, await ask("sample", { sample }));
    } catch {
      return; // what is wrong the next click will say
    }
    if (known.size > KEPT) known.delete(known.keys().next().value);
    if (now !== sample) return;
    box.replaceChildren(drawn(known.get(sample), about));
    box.dataset.sample = sample;
    box.hidden = false;
  });
  return (sample, { clientX, clientY }) => {
    if (sample !== now) {
      box.hidden = true;
      clearTimeout(rest);
      if (sample !== null) rest = setTimeout(() => show(sample), REST);
    }
    now = sample;
    const left = clientX > innerWidth / 2;
    const above = clientY > innerHeight / 2;
    box.style.transform = `translate(${left ? "-100%" : "0"}, ${above ? "-100%" : "0"})`;
    box.style.left = `${clientX + (left ? -14 : 14)}px`;
    box.style.top = `${clientY + (above ? -14 : 14)}px`;
  };
}

function drawn(found, about) {
  if (found.thumbnail_shape) return thumbnails(found, about)[0];
  const [values = []] = found.features ?? [];
  const lines = values.slice(0, 8).map((value, j) => html("div", {}, `${columnName(about, j)} ${short(value)}`));
  return html("div", {}, html("strong", {}, `sample ${found.samples[0]}`), ...lines);
}
