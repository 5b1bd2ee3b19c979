// The page: built from what the server says about the run; pictures, sliders and address follow one state.

import { dark, drawBar } from "./colours.js";
import { control } from "./controls.js";
import { picker } from "./direction.js";
import { byId, html, short, whole } from "./elements.js";
import { hoverer } from "./hover.js";
import { grid } from "./grid.js";
import { showNear } from "./neighbourhood.js";
import { showPage } from "./pages.js";
import { ask, column, download, file, latest, read, Refusal } from "./server.js";
import { conditions, fault, initial, named, pairOf, restored, rounded, written } from "./state.js";
import { factorView, jointView, options } from "./views.js";

const SETTLED = 250; // milliseconds without a change after which the address is written

let about;
let state;
let controls;
let views;
let showView = () => {};
let settled;

const problems = new Map();

/** Show the problems of all tasks whose last call failed. */
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
    const seen = { ...state };
    const other = state.of === "difference" ? { other: { conditions: conditions(state.kept) } } : {};
    const found = await (state.of === "place"
      ? ask("near", wanted())
      : ask("mean", { near: wanted(), conditions: conditions(state), ...other }));
    showNear(found, about, seen);
    document.body.dataset.near = JSON.stringify(seen.at);
  }),
);

/** The place, as the server takes it. */
function wanted() {
  const { at, factor, mode, count, axis, depth, view, source } = state;
  return { at, factor, mode, count, axis, depth, view, ...(source ? { source } : {}) };
}

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
    byId("clear").disabled = byId("keep").disabled = !some;
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

/** Show a page under an address of its own, from which the browser's button leads back. */
function visit(page) {
  if (page !== state.page) {
    clearTimeout(settled);
    history.replaceState(null, "", `#${written(state, initial(about))}`);
    state.page = page;
    history.pushState(null, "", `#${written(state, initial(about))}`);
  }
  return Promise.all([showPage(page, about, colourBy), showGrid()]);
}

function moved(factor, place) {
  state.at = state.at.with(factor, place);
  state.factor = factor;
  state.of = "place";
  showPlaces();
  showSource();
  askNear();
  changed();
}

function turned(view) {
  state.view = view;
  showView(view);
  askNear();
  changed();
}

function showPlaces() {
  const averaged = !about.preview.views || state.source === "images";
  const only = averaged && state.mode === "matched" && about.factors.length > 1;
  controls.forEach((each, f) => {
    each.show(state.at[f]);
    each.card.classList.toggle("active", only && f === state.factor);
  });
  for (const view of views) view.cloud.setMark(view.mark());
}

function showSelection() {
  controls.forEach(({ showRange }, f) => showRange(state.ranges[about.factors[f].columns[0]]));
  for (const { cloud, pair } of views) cloud.setLasso(state.lassos[pair()] ?? null);
  byId("conditions").replaceChildren(...chips());
  askSelected();
  if (state.of !== "place") askNear();
  changed();
}

/** A button for every condition, which removes it. */
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
  const kept = html("button", { type: "button", title: "Remove" }, "compared with a selection that was kept ×");
  kept.addEventListener("click", () => {
    Object.assign(state, { kept: null, of: state.of === "difference" ? "selection" : state.of });
    showSource();
    showSelection();
  });
  const pictured = (pair) => {
    const f = about.factors.findIndex(({ view }) => pairOf(view.x, view.y) === pair);
    const labels = named(pair).map((name) => columns[name].label);
    return f < 0 ? labels.join(" × ") : `picture of factor ${f + 1}`;
  };
  const lassos = Object.keys(state.lassos).map((pair) => chip(`lasso: ${pictured(pair)}`, "lassos", pair));
  return [...ranges, ...lassos, ...(state.kept ? [html("li", {}, kept)] : [])];
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

function describeRun() {
  document.title = `${about.name} · manifactor`;
  byId("title").textContent = `${about.name}: ${about.input}`;
  const said = [about.verdict, ...about.warnings].join(" ");
  byId("verdict").textContent = said.replaceAll(" %", "\u00a0%");
  byId("thinned").textContent =
    about.shown < about.samples
      ? `${whole(about.shown)} of ${whole(about.samples)} samples are drawn; counts and files are of all.`
      : "";
  byId("direction").hidden = !about.preview.views;
  listSources();
  byId("count").max = about.most_averaged;
  byId("cut").hidden = about.preview.kind !== "volumes";
  byId("colour").append(...options(about));
  byId("by").append(...options(about));
  byId("suffix").append(
    ...about.exports.map((suffix) =>
      html(
        "option",
        { value: suffix },
        { ".pkl": "ind.pkl (cryoDRGN)", ".star": "STAR (RELION)", ".cs": ".cs (cryoSPARC)" }[suffix] ?? suffix.slice(1),
      ),
    ),
  );
  // Of a run in parts, only some samples are here: no file could have all.
  const writes = about.exports.length > 0;
  byId("suffix").parentElement.hidden = byId("download").hidden = !writes;
  byId("save").hidden = !about.saves || !writes;
}

/** What can be shown of particles of all views, one of which is chosen. */
function listSources() {
  const sources = Object.entries(about.preview.sources);
  byId("sources").hidden = sources.length < 2;
  byId("sources").append(
    ...sources.map(([value, title]) =>
      html("label", { title }, html("input", { type: "radio", name: "source", value }), ` ${value}`),
    ),
  );
}

/** Settings of a mean of samples, where one is shown. */
function showSource() {
  const averaged = !about.preview.views || state.source === "images";
  if (!averaged) state.of = "place"; // a selection has no molecule of its own
  const place = state.of === "place";
  byId("modes").hidden = !place || !averaged || about.factors.length < 2;
  byId("count").parentElement.hidden = !place || !averaged;
  byId("of").hidden = about.preview.kind === "nothing";
  for (const choice of document.getElementsByName("of")) {
    choice.checked = choice.value === state.of;
    choice.disabled = (choice.value !== "place" && !averaged) || (choice.value === "difference" && !state.kept);
  }
}

function showSettings() {
  for (const name of ["mode", "tool", "source"])
    for (const choice of document.getElementsByName(name)) choice.checked = choice.value === state[name];
  for (const name of ["count", "axis", "depth", "colour", "side"]) byId(name).value = state[name];
  showSource();
  showView(state.view);
  views.at(-1).show();
}

function listen() {
  for (const button of document.querySelectorAll("[data-page]"))
    button.addEventListener(
      "click",
      safely(() => visit(button.dataset.page)),
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
  bind([...document.getElementsByName("mode")], "mode", String, () => {
    showPlaces();
    askNear();
  });
  bind([...document.getElementsByName("source")], "source", String, () => {
    showSource();
    showPlaces();
    askNear();
  });
  bind([...document.getElementsByName("of")], "of", String, () => {
    showSource();
    askNear();
  });
  bind([byId("side")], "side", Number, showGrid);
  [byId("grid-up"), byId("grid-across")].forEach((choice, i) =>
    choice.addEventListener("change", () => {
      const [before, now] = [state.grid[i], Number(choice.value)];
      state.grid = state.grid.map((f, j) => (j === i ? now : f === now ? before : f)); // never the same twice
      showGrid();
      changed();
    }),
  );
  byId("keep").addEventListener("click", () => {
    state.kept = { ranges: { ...state.ranges }, lassos: { ...state.lassos } };
    Object.assign(state, { ranges: {}, lassos: {} });
    showSource();
    showSelection();
  });
  byId("picture").addEventListener("click", () => {
    const image = byId("seen").querySelector("img");
    html("a", { href: image.src, download: `${about.name}.png` }).click();
  });
  bind([...document.getElementsByName("tool")], "tool", String, () => {});
  bind([byId("count")], "count", Number, askNear);
  bind([byId("axis")], "axis", Number, askNear);
  bind([byId("depth")], "depth", Number, askNear);
  bind([byId("colour")], "colour", String, colourViews);
  byId("all").addEventListener("click", () => views.forEach(({ cloud }) => cloud.showAll()));
  byId("add").addEventListener("click", () => {
    const ends = [byId("from"), byId("to")].map((end) => (end.value === "" ? NaN : Number(end.value)));
    const wrong = fault(about.columns[byId("by").value], ends);
    byId("fault").textContent = wrong;
    for (const end of [byId("from"), byId("to")]) end.setAttribute("aria-invalid", String(wrong !== ""));
    if (wrong) return;
    state.ranges[byId("by").value] = ends.map(rounded);
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
      download(await file({ conditions: conditions(state), suffix }), `${about.name}-selection${suffix}`);
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
  addEventListener("hashchange", ({ newURL }) => {
    // `changed` may have replaced the address between the change and this event.
    state = restored(new URL(newURL).hash.slice(1), about);
    askNear();
    show();
    changed();
  });
}

const show = safely(async () => {
  showSettings();
  showPlaces();
  showSelection();
  await Promise.all([colourViews(), showPage(state.page, about, colourBy), showGrid()]);
});

const showGrid = latest(
  safely(async () => {
    if (state.page === "grid")
      await grid(about, state, wanted(), (at) => {
        visit("explore");
        Object.assign(state, { at, mode: "held", of: "place" });
        showSettings();
        showPlaces();
        askNear();
        changed();
      });
  }),
);

const colourBy = safely((name) => {
  visit("explore");
  state.colour = byId("colour").value = name;
  changed();
  return colourViews();
});

/** Put the names of factors into the labels of columns. */
function nameColumns() {
  for (const each of Object.values(about.columns))
    if (["places", "confidence", "deviation"].includes(each.group))
      each.label = each.label.replace(/factor (\d+)/, (text, number) => about.names[number - 1] || text);
}

/** Give a factor a name, and show the page again with it. */
const rename = safely(async (factor, name) => {
  await ask("name", { factor, name });
  history.replaceState(null, "", `#${written(state, initial(about))}`);
  location.reload();
});

const saveMovie = safely(async (factor) => {
  download(await file({ ...wanted(), factor }, "movie"), `${about.name}-factor${factor + 1}.gif`);
});

async function start() {
  about = await read("about");
  nameColumns();
  state = restored(location.hash.slice(1), about);
  describeRun();
  byId("explore").hidden = byId("selection").hidden = state.page !== "explore";
  controls = about.factors.map((factor, f) =>
    control(f + 1, factor, about, {
      renamed: (name) => rename(f, name),
      movie: () => saveMovie(f),
      moved: (place) => moved(f, place),
      ranged: (range) => {
        if (range) state.ranges[factor.columns[0]] = range.map(rounded);
        else delete state.ranges[factor.columns[0]];
        showSelection();
      },
    }),
  );
  byId("controls").append(...controls.map((each) => each.card));
  if (about.preview.views) showView = picker(about.preview.views, turned);
  const app = {
    about,
    moved,
    hovered: hoverer(about),
    showPlaces,
    showSelection,
    get state() {
      return state;
    },
  };
  views = [...about.factors.map((_, f) => factorView(app, f)), jointView(app, (work) => latest(safely(work)))];
  const all = new Float32Array(about.shown).fill(1);
  for (const { cloud } of views) cloud.setChosen(all, false);
  askNear();
  await Promise.all(views.map(async (view) => view.cloud.setPoints(...(await view.points()))));
  listen();
  await show();
  document.body.dataset.ready = "yes";
}

safely(start)();
