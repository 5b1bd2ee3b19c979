// One picture of all samples: points, axes, the chosen place, and lasso, box or zoom by dragging.

import { map, rgb } from "./colours.js";
import { svg, ticks } from "./elements.js";
import { painter } from "./points.js";

const MARGIN = { left: 52, right: 10, top: 8, bottom: 38 };
const NEEDED = 5; // x, y, value, chosen and colours: with less there is nothing to draw
const CLICK = 4; // pixels below which a drag is a click
const NARROW = 0.01; // part of a picture that zoom does not go below at once
const STEP = 6; // pixels between corners of a lasso
const WHEEL = 1.25; // times that a turn of the wheel enlarges
const DEEPEST = 1e-5; // of the whole picture
const NEAR = 12; // pixels within which a sample is under the pointer
const ROUND = 1.22; // half the width of a circle's picture, whose samples lie within 1

export class Cloud {
  /**
   * `spec`: axes x and y with label, low, high; `round` for a circle. `heard`:
   * tool(), lassoed(polygon), picked(x, y), hovered(number of a drawn sample or null, event).
   */
  constructor(host, spec, heard) {
    this.spec = spec;
    this.heard = heard;
    this.canvas = document.createElement("canvas");
    this.overlay = svg("svg", { role: "img", "aria-label": spec.label });
    this.axes = svg("g");
    this.over = svg("svg"); // clips what reaches beyond the picture
    this.dragged = svg("path", { class: "lasso" });
    this.overlay.append(this.axes, this.over, this.dragged);
    host.replaceChildren(this.canvas, this.overlay);
    this.some = false;
    this.given = new Map();
    this.painter = painter(this.canvas);
    this.survive();
    this.reset();
    this.listen();
    new ResizeObserver(() => this.resize()).observe(host);
    this.host = host;
  }

  /** Restore the picture after the WebGL context was lost. */
  survive() {
    this.canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    this.canvas.addEventListener("webglcontextrestored", () => {
      this.painter = painter(this.canvas);
      const { colours, ...arrays } = Object.fromEntries(this.given);
      for (const [name, array] of Object.entries(arrays)) this.give(name, array);
      if (this.given.has("colours")) this.setColours(colours);
    });
  }

  reset() {
    const { x, y, round } = this.spec;
    const margin = (axis) => 0.03 * (axis.high - axis.low || 1);
    this.whole = true;
    this.low = round ? [-ROUND, -ROUND] : [x.low - margin(x), y.low - margin(y)];
    this.high = round ? [ROUND, ROUND] : [x.high + margin(x), y.high + margin(y)];
  }

  respec(spec) {
    this.spec = spec;
    this.overlay.setAttribute("aria-label", spec.label);
    this.lasso = null;
    this.reset();
  }

  setPoints(x, y) {
    this.x = x;
    this.y = y;
    this.give("x", x);
    this.give("y", y);
  }

  setValues(values) {
    this.give("value", values);
  }

  setChosen(chosen, some) {
    this.some = some;
    this.give("chosen", chosen);
  }

  give(name, array) {
    this.painter.set(name, array);
    this.given.set(name, array);
    this.later();
  }

  setColours(cyclic) {
    this.painter.colours(map(cyclic), rgb(getComputedStyle(document.body).getPropertyValue("--grey").trim()));
    this.given.set("colours", cyclic);
    this.later();
  }

  /** Shapes in the samples' own units: lines [[x, y], ...] and rings [x, y]. */
  setMark(mark) {
    this.mark = mark;
    this.later();
  }

  setLasso(polygon) {
    this.lasso = polygon;
    this.later();
  }

  later() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      this.draw();
    });
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.host;
    if (!width || !height) return;
    const margin = this.spec.round ? { left: 8, right: 8, top: 8, bottom: 8 } : MARGIN;
    this.box = {
      left: margin.left,
      top: margin.top,
      width: width - margin.left - margin.right,
      height: height - margin.top - margin.bottom,
    };
    const ratio = Math.min(devicePixelRatio, 2);
    Object.assign(this.canvas, {
      width: Math.round(this.box.width * ratio),
      height: Math.round(this.box.height * ratio),
    });
    for (const side of ["left", "top", "width", "height"]) this.canvas.style[side] = `${this.box[side]}px`;
    for (const [name, side] of [
      ["x", "left"],
      ["y", "top"],
      ["width", "width"],
      ["height", "height"],
    ])
      this.over.setAttribute(name, this.box[side]);
    this.over.setAttribute("viewBox", ["left", "top", "width", "height"].map((side) => this.box[side]).join(" "));
    this.ratio = ratio;
    this.draw();
  }

  /** The part of the plane that is shown; circles and surfaces keep their proportions. */
  window() {
    const low = [...this.low];
    const span = [this.high[0] - low[0], this.high[1] - low[1]];
    if (this.spec.equal) {
      const unit = Math.max(span[0] / this.box.width, span[1] / this.box.height);
      const wanted = [unit * this.box.width, unit * this.box.height];
      for (const i of [0, 1]) {
        low[i] -= (wanted[i] - span[i]) / 2;
        span[i] = wanted[i];
      }
    }
    return { low, span };
  }

  toPixels([x, y]) {
    const { low, span } = this.window();
    return [
      this.box.left + (this.box.width * (x - low[0])) / span[0],
      this.box.top + this.box.height * (1 - (y - low[1]) / span[1]),
    ];
  }

  toData([across, down]) {
    const { low, span } = this.window();
    return [
      low[0] + (span[0] * (across - this.box.left)) / this.box.width,
      low[1] + span[1] * (1 - (down - this.box.top) / this.box.height),
    ];
  }

  draw() {
    if (!this.box || this.given.size < NEEDED) return;
    const size = (this.x.length > 20000 ? 2 : this.x.length > 4000 ? 3 : 4) * this.ratio;
    this.painter.draw({ ...this.window(), size, some: this.some });
    this.axes.replaceChildren(...(this.spec.round ? this.circleAxes() : this.straightAxes()));
    const path = (corners, close) =>
      `M${corners
        .map((corner) =>
          this.toPixels(corner)
            .map((v) => v.toFixed(1))
            .join(),
        )
        .join("L")}${close ? "Z" : ""}`;
    const marks = (this.mark?.lines ?? []).map((line) => path(line));
    for (const ring of this.mark?.rings ?? []) {
      const [across, down] = this.toPixels(ring);
      marks.push(`M${across - 6} ${down}a6 6 0 1 0 12 0a6 6 0 1 0 -12 0`);
    }
    const drawn = marks.flatMap((d) => [svg("path", { class: "halo", d }), svg("path", { class: "mark", d })]);
    if (this.lasso) drawn.unshift(svg("path", { class: "lasso", d: path(this.lasso, true) }));
    this.over.replaceChildren(...drawn);
  }

  circleAxes() {
    return [0, 90, 180, 270].map((angle) => {
      const turn = (angle * Math.PI) / 180;
      const [across, down] = this.toPixels([1.13 * Math.cos(turn), 1.13 * Math.sin(turn)]);
      return svg("text", { x: across, y: down + 4, "text-anchor": "middle" }, `${angle}°`);
    });
  }

  straightAxes() {
    const { left, top, width, height } = this.box;
    const { low, span } = this.window();
    const bottom = top + height;
    const out = [
      svg("path", { class: "tick", fill: "none", d: `M${left} ${top}V${bottom}H${left + width}` }),
      svg("text", { x: left + width / 2, y: bottom + 32, "text-anchor": "middle" }, this.spec.x.label),
      svg(
        "text",
        { transform: `translate(11 ${top + height / 2}) rotate(-90)`, "text-anchor": "middle" },
        this.spec.y.label,
      ),
    ];
    for (const [value, text] of ticks(low[0], span[0], this.spec.x.cyclic)) {
      const [across] = this.toPixels([value, 0]);
      out.push(
        svg("path", { class: "tick", d: `M${across} ${bottom}v4` }),
        svg("text", { x: across, y: bottom + 16, "text-anchor": "middle" }, text),
      );
    }
    for (const [value, text] of ticks(low[1], span[1], this.spec.y.cyclic)) {
      const [, down] = this.toPixels([0, value]);
      out.push(
        svg("path", { class: "tick", d: `M${left} ${down}h-4` }),
        svg("text", { x: left - 6, y: down + 4, "text-anchor": "end" }, text),
      );
    }
    return out;
  }

  listen() {
    const at = (event) => {
      const box = this.overlay.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    let corners = null;
    this.overlay.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      this.overlay.setPointerCapture(event.pointerId);
      corners = [at(event)];
    });
    this.overlay.addEventListener("pointermove", (event) => {
      if (!corners) {
        if (event.pointerType === "mouse") this.heard.hovered(this.under(at(event)), event);
        return;
      }
      const here = at(event);
      const last = corners.at(-1);
      if (this.heard.tool() !== "lasso") corners = [corners[0], here];
      else if (Math.hypot(here[0] - last[0], here[1] - last[1]) > STEP) corners.push(here);
      this.dragged.setAttribute(
        "d",
        `M${this.outline(corners)
          .map((corner) => corner.join())
          .join("L")}Z`,
      );
    });
    this.overlay.addEventListener("pointerup", (event) => {
      if (!corners) return;
      const drawn = corners;
      corners = null;
      this.dragged.removeAttribute("d");
      const far = Math.max(...drawn.map((corner) => Math.hypot(corner[0] - drawn[0][0], corner[1] - drawn[0][1])));
      if (far < CLICK) this.clicked(at(event));
      else this.finished(this.outline(drawn).map((corner) => this.toData(corner)));
    });
    this.overlay.addEventListener("pointerleave", (event) => this.heard.hovered(null, event));
    this.overlay.addEventListener(
      "wheel",
      (event) => {
        // Away from a picture that is whole, the wheel scrolls the page.
        if (event.ctrlKey || event.deltaY === 0 || (this.whole && event.deltaY > 0)) return;
        event.preventDefault();
        this.heard.hovered(null, event);
        this.scale(at(event), event.deltaY < 0 ? 1 / WHEEL : WHEEL);
      },
      { passive: false },
    );
    this.overlay.addEventListener("pointercancel", () => {
      corners = null;
      this.dragged.removeAttribute("d");
    });
  }

  clicked(at) {
    if (this.heard.tool() !== "zoom") this.heard.picked(...this.toData(at));
  }

  /** Show so many times as much around a point, in pixels; never more than all. */
  scale(pixels, times) {
    const { low, span } = this.window();
    const centre = this.toData(pixels);
    const size = this.high.map((end, i) => end - this.low[i]);
    this.reset();
    const most = this.high.map((end, i) => end - this.low[i]);
    if (size.some((side, i) => side * times < most[i])) {
      if (size.every((side, i) => side * times > DEEPEST * most[i])) {
        this.low = low.map((end, i) => centre[i] - (centre[i] - end) * times);
        this.high = this.low.map((end, i) => end + span[i] * times);
      } else {
        this.low = low;
        this.high = low.map((end, i) => end + span[i]);
      }
      this.whole = false;
    }
    this.later();
  }

  /** The number of the drawn sample under a point, in pixels; null if there is none. */
  under(pixels) {
    if (!this.x) return null;
    const i = this.nearest(...this.toData(pixels));
    const [across, down] = this.toPixels([this.x[i], this.y[i]]);
    return Math.hypot(across - pixels[0], down - pixels[1]) < NEAR ? i : null;
  }

  showAll() {
    this.reset();
    this.later();
  }

  /** The corners of what was dragged, in pixels: a lasso as it is, otherwise a box. */
  outline(corners) {
    if (this.heard.tool() === "lasso") return corners;
    const [[x1, y1], [x2, y2]] = [corners[0], corners.at(-1)];
    return [
      [x1, y1],
      [x2, y1],
      [x2, y2],
      [x1, y2],
    ];
  }

  finished(polygon) {
    if (polygon.length < 3) return;
    if (this.heard.tool() !== "zoom") {
      this.heard.lassoed(polygon);
      return;
    }
    const { span } = this.window();
    const side = (i) => polygon.map((corner) => corner[i]);
    const low = [0, 1].map((i) => Math.min(...side(i)));
    const high = [0, 1].map((i) => Math.max(...side(i)));
    if (low.some((value, i) => high[i] - value < NARROW * span[i])) return;
    Object.assign(this, { low, high, whole: false });
    this.later();
  }

  /** The drawn sample nearest to a point of the picture. */
  nearest(x, y) {
    const { span } = this.window();
    let best = 0;
    let least = Infinity;
    for (let i = 0; i < this.x.length; i++) {
      const away = ((this.x[i] - x) / span[0]) ** 2 + ((this.y[i] - y) / span[1]) ** 2;
      if (away < least) {
        least = away;
        best = i;
      }
    }
    return best;
  }
}
