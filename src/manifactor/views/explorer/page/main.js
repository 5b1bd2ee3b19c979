// The page: builds itself from what the server says of the run, and keeps pictures, sliders and address in step.

import { Cloud } from "./cloud.js";
import { dark, drawBar, own } from "./colours.js";
import { control } from "./controls.js";
import { byId, html, short, whole } from "./elements.js";
import { showNear } from "./near.js";
import { showPage } from "./pages.js";
import { ask, column, file, latest, read, Refusal } from "./server.js";
import { conditions, initial, pairOf, restored, rounded, sound, written } from "./state.js";

const SETTLED = 250; // milliseconds without a change after which the address is written

let about;
let state;
let controls;
let views;
let settled;

const problems = new Map();

/** What went wrong, in words, until the same thing goes right. */
function showProblems() {
  byId("problem").hidden = problems.size === 0;
  byId("problem").textContent = [...new Set(problems.values())].join(" ");
}

const safely =
  (work) =>
  async (...given) => {
    try {
      await work(...given);
      problems.delete(work);
    } catch (error) {
      problems.set(work, error.message);
      if (!(error instanceof Refusal)) throw error; // a mistake of this page: the browser's console has all of it
    } finally {
      showProblems();
    }
  };

const askNear = latest(
  safely(async () => {
    const { at, factor, mode, count, axis, depth } = state;
    const seen = { ...state };
    showNear(await ask("near", { at, factor, mode, count, axis, depth }), about, seen);
    document.body.dataset.near = JSON.stringify(at);
  }),
);

const askSelected = latest(
  safely(async () => {
    const wanted = conditions(state);
    const some = wanted.length > 0;
    const { count, shown } = some ? await ask("select", { conditions: wanted }) : { count: about.samples, shown: null };
    const bits = shown ? Uint8Array.from(atob(shown), (letter) => letter.charCodeAt(0)) : null;
    const chosen = new Float32Array(about.shown).map((_, i) => (bits ? (bits[i >> 3] >> (7 - (i & 7))) & 1 : 1));
    for (const { cloud } of views) cloud.setChosen(chosen, some);
    byId("selected").replaceChildren(
      ...(some
        ? [html("strong", {}, whole(count)), ` of ${whole(about.samples)} samples selected`]
        : [`All ${whole(about.samples)} samples; drag in a picture or give a range to select some`]),
    );
    byId("download").disabled = byId("save").disabled = count === 0;
    byId("clear").disabled = !some;
    byId("saved").textContent = "";
    document.body.dataset.selected = count;
  }),
);

function changed() {
  clearTimeout(settled);
  settled = setTimeout(() => {
    history.replaceState(null, "", `#${written(state, initial(about))}`);
    byId("spoken").textContent = byId("caption").textContent;
  }, SETTLED);
}

function moved(factor, place) {
  state.at = state.at.with(factor, place);
  state.factor = factor;
  showPlaces();
  askNear();
  changed();
}

function showPlaces() {
  controls.forEach(({ show }, f) => show(state.at[f]));
  for (const view of views) view.cloud.setMark(view.mark());
}

function showSelection() {
  controls.forEach(({ showRange }, f) => showRange(state.ranges[about.factors[f].columns[0]]));
  for (const { cloud, pair } of views) cloud.setLasso(state.lassos[pair()] ?? null);
  byId("conditions").replaceChildren(...chips());
  askSelected();
  changed();
}

/** A button for every condition, which takes it away. */
function chips() {
  const { columns } = about;
  const chip = (text, group, name) => {
    const button = html("button", { type: "button", title: "Remove" }, `${text} ×`);
    button.addEventListener("click", () => {
      delete state[group][name];
      showSelection();
    });
    return html("li", {}, button);
  };
  const ranges = Object.entries(state.ranges).map(([name, ends]) =>
    chip(`${columns[name].label}: ${ends.join(" to ")}`, "ranges", name),
  );
  const pictured = (pair) => {
    const f = about.factors.findIndex(({ view }) => pairOf(view.x, view.y) === pair);
    return f < 0
      ? pair
          .split("~")
          .map((name) => columns[name].label)
          .join(" × ")
      : `picture of factor ${f + 1}`;
  };
  return [...ranges, ...Object.keys(state.lassos).map((pair) => chip(`lasso: ${pictured(pair)}`, "lassos", pair))];
}

const colourViews = latest(
  safely(async () => {
    const { cyclic, low, high } = about.columns[state.colour];
    const values = (await column(state.colour)).map((value) =>
      Number.isFinite(value) ? Math.min(Math.max((value - low) / (high - low || 1), 0), 1) : -1,
    );
    for (const { cloud } of views) {
      cloud.setColours(cyclic);
      cloud.setValues(values);
    }
    drawBar(byId("bar"), cyclic);
    byId("low").textContent = cyclic ? "0°" : short(low, (high - low) / 2);
    byId("high").textContent = cyclic ? "360°" : short(high, (high - low) / 2);
  }),
);

const axisOf = (name) => about.columns[name];
const describe = (x, y) => `${whole(about.shown)} samples, ${x} across and ${y} upwards`;

/** A picture in a card of its own. */
function card(title, ...more) {
  const plot = html("div", { class: "plot" });
  byId("clouds").append(
    html("section", { class: "cloud" }, html("div", { class: "title" }, html("h3", {}, title), ...more), plot),
  );
  return plot;
}

function heardBy(view, picked) {
  return {
    tool: () => state.tool,
    lassoed: (polygon) => {
      const every = Math.ceil(polygon.length / about.most_corners);
      state.lassos[view.pair()] = polygon.filter((_, i) => i % every === 0).map((corner) => corner.map(rounded));
      showSelection();
    },
    picked,
  };
}

function factorView(f) {
  const {
    topology,
    shape,
    view: { x, y },
    columns,
  } = about.factors[f];
  const round = topology === "circle";
  const named = (name) => ({
    ...axisOf(name),
    label: name.endsWith("_confidence") ? "confidence" : axisOf(name).label,
  });
  const label = round
    ? describe("angle on the circle, confidence outwards:", "")
    : describe(named(x).label, named(y).label);
  const view = { pair: () => pairOf(x, y) };
  const plot = card(`Factor ${f + 1}: ${shape}`);
  plot.parentElement.style.setProperty("--own", own(f));
  view.cloud = new Cloud(
    plot,
    { x: named(x), y: named(y), round, equal: topology !== "interval", label },
    heardBy(view, async (across, up) => {
      if (round) moved(f, [((Math.atan2(up, across) * 180) / Math.PI + 360) % 360]);
      else if (topology === "interval") moved(f, [Math.min(Math.max(across, 0), 1)]);
      else {
        const i = view.cloud.nearest(across, up);
        moved(
          f,
          (await Promise.all(columns.map(column))).map((values) => values[i]),
        );
      }
    }),
  );
  view.mark = () => {
    const at = state.at[f];
    const turn = (at[0] * Math.PI) / 180;
    if (round)
      return { lines: [[about.inner, 1.02].map((radius) => [radius * Math.cos(turn), radius * Math.sin(turn)])] };
    return topology === "interval"
      ? {
          lines: [
            [
              [at[0], axisOf(y).low],
              [at[0], axisOf(y).high],
            ],
          ],
        }
      : { rings: [[at[0], at[1] ?? axisOf(y).high]] };
  };
  view.points = () => Promise.all([column(x), column(y)]);
  return view;
}

/** Where a column's factor and axis are, if it is a place. */
function placeOf(name) {
  const f = about.factors.findIndex(({ columns }) => columns.includes(name));
  return f < 0 ? null : { f, axis: about.factors[f].columns.indexOf(name) };
}

function jointView() {
  const choices = state.xy.map((_, i) => html("select", { "aria-label": i ? "upwards" : "across" }, ...options()));
  const view = { pair: () => pairOf(...state.xy) };
  const spec = () => {
    const [x, y] = state.xy.map(axisOf);
    return { x, y, equal: false, label: describe(x.label, y.label) };
  };
  const plot = card("Together", html("span", {}, choices[0], " × ", choices[1]));
  plot.parentElement.classList.add("joint");
  view.cloud = new Cloud(
    plot,
    spec(),
    heardBy(view, (...at) => {
      const places = [...state.at];
      state.xy.forEach((name, i) => {
        const place = placeOf(name);
        const { low, high } = axisOf(name);
        if (place) {
          places[place.f] = places[place.f].with(place.axis, Math.min(Math.max(at[i], low), high));
          state.factor = place.f;
        }
      });
      state.at = places;
      moved(state.factor, places[state.factor]);
    }),
  );
  view.mark = () => {
    const at = state.xy.map((name) => {
      const place = placeOf(name);
      return place ? state.at[place.f][place.axis] : null;
    });
    const [x, y] = state.xy.map(axisOf);
    const lines = [];
    if (at[0] !== null)
      lines.push([
        [at[0], y.low],
        [at[0], y.high],
      ]);
    if (at[1] !== null)
      lines.push([
        [x.low, at[1]],
        [x.high, at[1]],
      ]);
    return { lines };
  };
  view.points = () => Promise.all(state.xy.map(column));
  view.show = latest(
    safely(async () => {
      choices.forEach((choice, i) => {
        choice.value = state.xy[i];
      });
      const points = await view.points();
      view.cloud.respec(spec());
      view.cloud.setPoints(...points);
      showPlaces();
      showSelection();
    }),
  );
  choices.forEach((choice, i) =>
    choice.addEventListener("change", () => {
      state.xy = state.xy.with(i, choice.value);
      view.show();
    }),
  );
  return view;
}

const GROUPS = { places: "Places", confidence: "Confidence", particles: "Particles", samples: "Samples" };

/** All columns with a name, under headings. */
function options() {
  return Object.entries(GROUPS)
    .map(([group, title]) => {
      const own = Object.entries(about.columns).filter(([, found]) => found.group === group);
      return html(
        "optgroup",
        { label: title },
        ...own.map(([name, { label }]) => html("option", { value: name }, label)),
      );
    })
    .filter((group) => group.children.length);
}

function describeRun() {
  document.title = `${about.name} · manifactor`;
  byId("title").textContent = `${about.name}: ${about.input}`;
  byId("verdict").textContent = [about.verdict, ...about.warnings].join(" ");
  byId("thinned").textContent =
    about.shown < about.samples
      ? `${whole(about.shown)} of ${whole(about.samples)} samples are drawn; counts and files are of all.`
      : "";
  byId("modes").hidden = about.factors.length < 2;
  byId("count").max = about.most_averaged;
  byId("cut").hidden = about.behind.kind !== "volumes";
  byId("colour").append(...options());
  byId("by").append(...options());
  byId("suffix").append(
    ...about.exports.map((suffix) =>
      html(
        "option",
        { value: suffix },
        { ".pkl": "ind.pkl (cryoDRGN)", ".star": "STAR (RELION)", ".cs": ".cs (cryoSPARC)" }[suffix] ?? suffix.slice(1),
      ),
    ),
  );
  byId("save").hidden = !about.saves;
}

function showSettings() {
  for (const name of ["mode", "tool"])
    for (const choice of document.getElementsByName(name)) choice.checked = choice.value === state[name];
  for (const name of ["count", "axis", "depth", "colour"]) byId(name).value = state[name];
  views.at(-1).show();
}

function listen() {
  for (const button of document.querySelectorAll("[data-page]"))
    button.addEventListener(
      "click",
      safely(async () => {
        state.page = button.dataset.page;
        changed();
        await showPage(state.page, about);
      }),
    );
  const bind = (elements, name, convert, then) =>
    elements.forEach((element) =>
      element.addEventListener("input", () => {
        if (element.type === "number" && (element.value === "" || !element.validity.valid)) return;
        state[name] = convert(element.value);
        then();
        changed();
      }),
    );
  bind([...document.getElementsByName("mode")], "mode", String, askNear);
  bind([...document.getElementsByName("tool")], "tool", String, () => {});
  bind([byId("count")], "count", Number, askNear);
  bind([byId("axis")], "axis", Number, askNear);
  bind([byId("depth")], "depth", Number, askNear);
  bind([byId("colour")], "colour", String, colourViews);
  byId("all").addEventListener("click", () => views.forEach(({ cloud }) => cloud.showAll()));
  byId("add").addEventListener("click", () => {
    const [low, high] = [byId("from"), byId("to")].map((end) => (end.value === "" ? NaN : Number(end.value)));
    const by = about.columns[byId("by").value];
    const fits = [low, high].every(sound(by)) && (by.cyclic || low <= high);
    for (const end of [byId("from"), byId("to")]) end.setAttribute("aria-invalid", String(!fits));
    if (!fits) return;
    state.ranges[byId("by").value] = [low, high].map(rounded);
    showSelection();
  });
  byId("clear").addEventListener("click", () => {
    state.ranges = {};
    state.lassos = {};
    showSelection();
  });
  byId("download").addEventListener(
    "click",
    safely(async () => {
      const suffix = byId("suffix").value;
      const address = URL.createObjectURL(await file({ conditions: conditions(state), suffix }));
      html("a", { href: address, download: `${about.name}-selection${suffix}` }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60000);
    }),
  );
  byId("save").addEventListener(
    "click",
    safely(async () => {
      const { saved } = await ask("save", { conditions: conditions(state), suffix: byId("suffix").value });
      byId("saved").textContent = `Saved: ${saved}`;
    }),
  );
  dark.addEventListener("change", colourViews);
  addEventListener("hashchange", () => {
    state = restored(location.hash.slice(1), about);
    show();
  });
}

const show = safely(async () => {
  showSettings();
  showPlaces();
  showSelection();
  askNear();
  await Promise.all([colourViews(), showPage(state.page, about)]);
});

async function start() {
  about = await read("about");
  state = restored(location.hash.slice(1), about);
  describeRun();
  byId("explore").hidden = byId("selection").hidden = state.page !== "explore";
  controls = about.factors.map((factor, f) =>
    control(f + 1, factor, {
      moved: (place) => moved(f, place),
      ranged: (range) => {
        if (range) state.ranges[factor.columns[0]] = range.map(rounded);
        else delete state.ranges[factor.columns[0]];
        showSelection();
      },
    }),
  );
  byId("controls").append(...controls.map((each) => each.card));
  views = [...about.factors.map((_, f) => factorView(f)), jointView()];
  const all = new Float32Array(about.shown).fill(1);
  for (const { cloud } of views) cloud.setChosen(all, false);
  askNear();
  await Promise.all(views.map(async (view) => view.cloud.setPoints(...(await view.points()))));
  listen();
  await show();
  document.body.dataset.ready = "yes";
}

safely(start)();
