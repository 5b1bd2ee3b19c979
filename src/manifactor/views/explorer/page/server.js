// Requests to the server. The browser adds the cookie that holds the token.

import { html } from "./elements.js";

/** A request that the server refused or did not answer. */
export class Refusal extends Error {}

const columns = new Map();

async function answered(path, options = {}) {
  let response;
  try {
    response = await fetch(`/api/${path}`, options);
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

export const file = async (body, name = "export") => (await asked(name, body)).blob();

/** Hand content to the browser as a file. */
export function download(content, name) {
  const address = URL.createObjectURL(content);
  html("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

/** The values of a column for every sample that is drawn; requested once. */
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

/** Run `work` one call at a time; of the calls made meanwhile only the last is run. */
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
