/** A test suite for modules, small enough to read: each file names its cases, `runAll` gives the outcomes. */

const cases = [];

export const test = (name, run) => cases.push({ name, run });

/** @returns {Promise<Record<string, string>>}  name to "" or what went wrong */
export async function runAll() {
  const outcomes = {};
  for (const { name, run } of cases) {
    try {
      await run();
      outcomes[name] = "";
    } catch (error) {
      outcomes[name] = error.stack;
    }
  }
  return outcomes;
}

/** Objects are equal when their JSON is, with keys in any order. */
const canonical = (value) =>
  JSON.stringify(value, (_, inner) =>
    inner && typeof inner === "object" && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );

export function equal(actual, expected) {
  const [got, wanted] = [canonical(actual), canonical(expected)];
  if (got !== wanted) throw new Error(`expected ${wanted}, got ${got}`);
}

export function ok(value, message = "expected something true") {
  if (!value) throw new Error(message);
}

/** Wait until the page has painted what is due. */
export const nextFrame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
