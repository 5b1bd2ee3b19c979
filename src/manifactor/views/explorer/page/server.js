// What the server is asked. The token stands in the address of the page.

/** What the server, or its absence, says of a request. */
export class Refusal extends Error {}

const token = new URLSearchParams(location.search).get("token") ?? "";
const columns = new Map();

async function answered(path, options = {}) {
  let response;
  try {
    response = await fetch(`/api/${path}`, {
      ...options,
      headers: { "X-Manifactor-Token": token, ...options.headers },
    });
  } catch {
    throw new Refusal("The explorer does not answer: it was stopped, or the connection to its machine is gone.");
  }
  if (response.ok) return response;
  const text = await response.text();
  let problem = text;
  try {
    problem = JSON.parse(text).error ?? text;
  } catch {
    /* plain text */
  }
  throw new Refusal(problem);
}

export const read = async (name) => (await answered(name)).json();

const asked = (name, body) =>
  answered(name, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

export const ask = async (name, body) => (await asked(name, body)).json();

export const file = async (body) => (await asked("export", body)).blob();

/** The numbers of a column for every sample that is drawn; asked for once. */
export function column(name) {
  if (!columns.has(name)) {
    const values = answered(`column/${encodeURIComponent(name)}`).then(
      async (found) => new Float32Array(await found.arrayBuffer()),
    );
    values.catch(() => columns.delete(name));
    columns.set(name, values);
  }
  return columns.get(name);
}

/** The work, one call at a time; of the calls that come meanwhile only the last is made. */
export function latest(work) {
  let busy = false;
  let next = null;
  return async function run(...given) {
    if (busy) {
      next = given;
      return;
    }
    busy = true;
    try {
      await work(...given);
    } finally {
      busy = false;
      if (next) {
        const then = next;
        next = null;
        run(...then);
      }
    }
  };
}
