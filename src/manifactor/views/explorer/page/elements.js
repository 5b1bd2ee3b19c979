// Elements of the page, made in one line.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false && value != null) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

export const html = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);

export const byId = (id) => document.getElementById(id);

/** A number with as many digits as its range needs. */
export function short(value, span = Math.abs(value)) {
  if (!Number.isFinite(value)) return "–";
  const digits = span >= 100 ? 0 : span >= 10 ? 1 : span >= 1 ? 2 : span >= 0.1 ? 3 : null;
  const small =
    value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential(1) : Number(value.toPrecision(3)).toString();
  const text = digits === null ? small : value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text;
}

export const whole = (value) => value.toLocaleString("en-US");

/** Round numbers along an axis, as numbers and as text. */
export function ticks(low, span, cyclic = false) {
  const rough = span / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const steps = cyclic && rough > 20 ? [30, 60, 90] : [1, 2, 5, 10].map((step) => step * power);
  const step = steps.find((each) => each >= rough) ?? 90;
  const digits = Math.min(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), 12);
  const out = [];
  for (let k = Math.ceil(low / step); k * step <= low + span && out.length < 20; k++)
    out.push([k * step, `${(k * step).toFixed(digits)}${cyclic ? "°" : ""}`]);
  return out;
}
