// The page: built from what the server says about the run; pictures, sliders and address follow one state.

import { dark, drawBar } from "./colours.js";
import { control } from "./controls.js";
import { picker } from "./direction.js";
import { byId, html, short, whole } from "./elements.js";
import { showNear } from "./neighbourhood.js";
import { showPage } from "./pages.js";
import { ask, column, file, latest, read, Refusal } from "./server.js";
import { conditions, initial, named, pairOf, restored, rounded, sound, written } from "./state.js";
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
    const { at, factor, mode, count, axis, depth, view, source } = state;
    const seen = { ...state };
    const wanted = { at, factor, mode, count, axis, depth, view, ...(source ? { source } : {}) };
    showNear(await ask("near", wanted), about, seen);
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
  const pictured = (pair) => {
    const f = about.factors.findIndex(({ view }) => pairOf(view.x, view.y) === pair);
    const labels = named(pair).map((name) => columns[name].label);
    return f < 0 ? labels.join(" × ") : `picture of factor ${f + 1}`;
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
  byId("modes").hidden = !averaged || about.factors.length < 2;
  byId("count").parentElement.hidden = !averaged;
}

function showSettings() {
  for (const name of ["mode", "tool", "source"])
    for (const choice of document.getElementsByName(name)) choice.checked = choice.value === state[name];
  for (const name of ["count", "axis", "depth", "colour"]) byId(name).value = state[name];
  showSource();
  showView(state.view);
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
  bind([...document.getElementsByName("mode")], "mode", String, () => {
    showPlaces();
    askNear();
  });
  bind([...document.getElementsByName("source")], "source", String, () => {
    showSource();
    showPlaces();
    askNear();
  });
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
  if (about.preview.views) showView = picker(about.preview.views, turned);
  const app = {
    about,
    moved,
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
