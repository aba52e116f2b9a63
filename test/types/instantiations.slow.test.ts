import { describe, expect, test } from 'vitest';
import { compile, project } from './compile.ts';

/**
 * How many instantiations the library's types may cost for each kind of job in an app, beyond those of its schemas: as measured
 * (see docs/decisions/package.md), plus a fifth. A number of things, not of milliseconds, so it is the same on every machine.
 */
const MAX_PER_KIND = 1_300;

/** A kind as apps have them: schemas, a handler that uses what it gets, enqueues, and looks at what became of it. */
function kind(n: number): string {
  return `
const payload${n} = z.object({ id: z.number(), name${n}: z.string(), tags: z.array(z.string()).optional() });
const output${n} = z.object({ messageId: z.string(), at: z.iso.datetime() });
/* library */
export const job${n} = defineJob('job-${n}', { payload: payload${n}, output: output${n}, queue: 'q${n % 5}', maxAttempts: 5 });
export const handler${n} = handle(job${n}, async ({ payload, job, signal, complete }) => {
  if (payload.tags === undefined) return snooze(job.attempt * 1_000);
  await db.transaction(async (tx) => await complete(tx, { messageId: payload.name${n}, at: '' }));
  return signal.aborted ? cancel('too late') : undefined;
});
export async function use${n}(): Promise<string | undefined> {
  await db.transaction(async (tx) => await queue.enqueue(tx, job${n}, { id: ${n}, name${n}: 'n' }, { delayMs: 5 }));
  await queue.enqueueMany(db, job${n}, [{ payload: { id: ${n}, name${n}: 'n' }, priority: 1 }]);
  const found = await queue.find(db, job${n}, ${n});
  const { jobs } = await queue.list(db, { job: job${n}, state: 'completed' });
  return found?.state === 'completed' ? found.output.messageId : jobs[0]?.payload.name${n};
}
/* end */
`;
}

/** An app with so many kinds; without the library it has their schemas alone. */
function app(kinds: number, library: boolean): string {
  const numbers = Array.from({ length: kinds }, (_, n) => n);
  const text = `import { cancel, createQueue, createWorker, defineJob, handle, snooze } from 'drizzle-queue';
import { z } from 'zod';
import { postgresJs as db } from './databases.ts';
const queue = createQueue();
${numbers.map(kind).join('')}
/* library */
export const worker = createWorker(db, { queue, handlers: [${numbers.map((n) => `handler${n}`).join(', ')}] });
/* end */
export {};`;
  return library ? text : text.replaceAll(/\/\* library \*\/[\s\S]*?\/\* end \*\//g, '');
}

/** How many types the compiler makes for a file in this folder; what `tsc --extendedDiagnostics` calls instantiations. */
function instantiations(text: string): number {
  const { program, mistakes } = compile(text);
  expect(mistakes).toEqual([]);
  return program.getInstantiationCount();
}

describe('what the types cost an app', { timeout: 120_000 }, () => {
  test('of 200 kinds of jobs', () => {
    const kinds = 200;
    const library = instantiations(app(kinds, true)) - instantiations(app(kinds, false));
    console.info(`${project}: ${Math.round(library / kinds)} per kind`);
    expect(library).toBeGreaterThan(0);
    expect(library / kinds).toBeLessThan(MAX_PER_KIND);
  });
});
