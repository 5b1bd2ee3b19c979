// Points on a canvas, drawn by WebGL, or by the 2D context where there is no WebGL.

const VERTEX = `
attribute float x, y, value, chosen;
uniform vec2 low, span;
uniform float size, which;
varying float shade;
void main() {
  bool drawn = abs(chosen - which) < .5;
  gl_Position = drawn ? vec4(2. * (vec2(x, y) - low) / span - 1., 0., 1.) : vec4(2., 2., 2., 1.);
  gl_PointSize = size;
  shade = value;
}`;
const FRAGMENT = `
precision mediump float;
uniform sampler2D colours;
uniform vec3 grey;
uniform float alpha;
varying float shade;
void main() {
  vec2 away = gl_PointCoord - .5;
  if (dot(away, away) > .25) discard;
  vec3 colour = shade < 0. ? grey : texture2D(colours, vec2(shade, .5)).rgb;
  gl_FragColor = vec4(colour * alpha, alpha);
}`;
const FAINT = 0.14;
const FULL = 0.85;

/** A painter with set(name, array), colours(map, grey) and draw({low, span, size, some}). */
export function painter(canvas) {
  const gl = canvas.getContext("webgl", { alpha: true, antialias: false, premultipliedAlpha: true });
  return gl ? new Graphics(gl) : new ByHand(canvas.getContext("2d"));
}

class Graphics {
  constructor(gl) {
    this.gl = gl;
    this.count = 0;
    const program = gl.createProgram();
    for (const [kind, source] of [
      [gl.VERTEX_SHADER, VERTEX],
      [gl.FRAGMENT_SHADER, FRAGMENT],
    ]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.place = (name) => gl.getUniformLocation(program, name);
    this.buffers = Object.fromEntries(["x", "y", "value", "chosen"].map((name) => [name, gl.createBuffer()]));
    for (const [name, buffer] of Object.entries(this.buffers)) {
      const attribute = gl.getAttribLocation(program, name);
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.enableVertexAttribArray(attribute);
      gl.vertexAttribPointer(attribute, 1, gl.FLOAT, false, 0, 0);
    }
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    for (const [key, value] of [
      ["MIN_FILTER", gl.LINEAR],
      ["MAG_FILTER", gl.LINEAR],
      ["WRAP_S", gl.CLAMP_TO_EDGE],
      ["WRAP_T", gl.CLAMP_TO_EDGE],
    ]) {
      gl.texParameteri(gl.TEXTURE_2D, gl[`TEXTURE_${key}`], value);
    }
  }

  set(name, array) {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, array, gl.DYNAMIC_DRAW);
    this.count = array.length;
  }

  colours(map, grey) {
    const { gl } = this;
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, map.length / 4, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, map);
    gl.uniform3fv(
      this.place("grey"),
      grey.map((c) => c / 255),
    );
  }

  draw({ low, span, size, some }) {
    const { gl } = this;
    gl.viewport(0, 0, gl.canvas.width, gl.canvas.height);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.uniform2fv(this.place("low"), low);
    gl.uniform2fv(this.place("span"), span);
    gl.uniform1f(this.place("size"), size);
    for (const which of some ? [0, 1] : [1]) {
      gl.uniform1f(this.place("which"), which);
      gl.uniform1f(this.place("alpha"), which ? FULL : FAINT);
      gl.drawArrays(gl.POINTS, 0, this.count);
    }
  }
}

class ByHand {
  constructor(context) {
    this.context = context;
    this.arrays = {};
  }

  set(name, array) {
    this.arrays[name] = array;
  }

  colours(map, grey) {
    this.shades = Array.from(
      { length: map.length / 4 },
      (_, i) => `rgb(${map[4 * i]},${map[4 * i + 1]},${map[4 * i + 2]})`,
    );
    this.grey = `rgb(${grey.join()})`;
  }

  draw({ low, span, size, some }) {
    const { context } = this;
    const { width, height } = context.canvas;
    const { x, y, value, chosen } = this.arrays;
    context.clearRect(0, 0, width, height);
    for (const which of some ? [0, 1] : [1]) {
      context.globalAlpha = which ? FULL : FAINT;
      for (let i = 0; i < x.length; i++) {
        if (chosen[i] !== which) continue;
        context.fillStyle = value[i] < 0 ? this.grey : this.shades[Math.round(value[i] * (this.shades.length - 1))];
        const across = ((x[i] - low[0]) / span[0]) * width;
        const down = (1 - (y[i] - low[1]) / span[1]) * height;
        context.fillRect(across - size / 2, down - size / 2, size, size);
      }
    }
  }
}
