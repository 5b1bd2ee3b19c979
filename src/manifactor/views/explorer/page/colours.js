// Colours that the colour-blind tell apart: Okabe and Ito's for factors, viridis for numbers, a cycle for angles.

export const FACTORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
const VIRIDIS = [
  "#440154",
  "#482878",
  "#3e4989",
  "#31688e",
  "#26828e",
  "#1f9e89",
  "#35b779",
  "#6ece58",
  "#b5de2b",
  "#fde725",
];
const CYCLE = ["#2f7fc1", "#8fd0a8", "#dd7a25", "#6a3d6e", "#2f7fc1"];
const SIZE = 256;

export const dark = matchMedia("(prefers-color-scheme: dark)");

export const own = (factor) => FACTORS[factor % FACTORS.length];

/** A map's colours, 256 times red, green, blue, opaque; without the end of viridis that the ground would swallow. */
export function map(cyclic) {
  const stops = (cyclic ? CYCLE : VIRIDIS).map(rgb);
  const [from, to] = cyclic ? [0, 1] : dark.matches ? [0.25, 1] : [0, 0.9];
  const out = new Uint8Array(4 * SIZE);
  for (let i = 0; i < SIZE; i++) {
    const place = (from + ((to - from) * i) / (SIZE - 1)) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    for (let c = 0; c < 3; c++) out[4 * i + c] = stops[low][c] + (place - low) * (stops[low + 1][c] - stops[low][c]);
    out[4 * i + 3] = 255;
  }
  return out;
}

export function rgb(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

/** Draw a map into a small canvas. */
export function drawBar(canvas, cyclic) {
  const image = new ImageData(new Uint8ClampedArray(map(cyclic)), SIZE, 1);
  const strip = document.createElement("canvas");
  strip.width = SIZE;
  strip.height = 1;
  strip.getContext("2d").putImageData(image, 0, 0);
  canvas.getContext("2d").drawImage(strip, 0, 0, canvas.width, canvas.height);
}
