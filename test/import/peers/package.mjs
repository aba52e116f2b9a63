import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const require = createRequire(new URL('../../../bench/package.json', import.meta.url));

/** A package of the benches. */
export async function load(name) {
  return await import(pathToFileURL(require.resolve(name)).href);
}

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** What a program is told: the first line of its input. */
export const options = JSON.parse((await lines.next()).value);

/** How it says something. */
export const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

/** Resolves when the parent closes our input. */
export async function untilAsked() {
  await lines.next();
}

/** Does a job of 50 ms, so that a worker does not do all of them before an import begins. */
export async function slowly(n) {
  await new Promise((resolve) => setTimeout(resolve, 50));
  say(n);
}
