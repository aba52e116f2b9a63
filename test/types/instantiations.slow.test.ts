import { describe, expect, test } from 'vitest';
import { compile, project } from './compile.ts';

/**
 * How many instantiations the library's types may cost for each kind of job in an app, beyond those of its schemas: as measured
 * (see docs/decisions/package.md), plus a fifth. A number of things, not of milliseconds, so it is the same on every machine.
 */
const MAX_PER_KIND = 1_300;
/** The same for a kind in steps, with a signal, a child, the first of several and a flow of its own. */
const MAX_PER_WORKFLOW = 2_100;

const KINDS = 200;

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

/** A kind with a handler in steps: each of the calls that an app makes. */
function workflow(n: number): string {
  return `
const payload${n} = z.object({ id: z.number(), name${n}: z.string(), tags: z.array(z.string()).optional() });
const output${n} = z.object({ messageId: z.string(), at: z.iso.datetime() });
const answer${n} = z.object({ by: z.string(), ok${n}: z.boolean() });
/* library */
export const job${n} = defineJob('job-${n}', { payload: payload${n}, output: output${n}, queue: 'q${n % 5}' });
export const signal${n} = defineSignal('signal-${n}', answer${n});
export const handler${n} = handle(job${n}, async ({ payload, step, complete }) => {
  const charge = await step.run('charge', { attempts: 3 }, ({ idempotencyKey }) => ({ id: idempotencyKey }));
  await step.transaction('write', async (tx) => await tx.execute(charge.id));
  const answer = await step.waitForSignal(signal${n}, { timeoutMs: 5 });
  if (answer?.ok${n} === false) throw new NonRetryableError(payload.name${n});
  const child = await step.waitForJob(await step.enqueue('child', job${n}, { id: ${n}, name${n}: 'n' }));
  const first = await step.first('first', { answered: signal${n}, late: { delayMs: 5 } });
  const at = first.key === 'answered' ? first.value.by : child.at;
  await db.transaction(async (tx) => await complete(tx, { messageId: charge.id, at }));
});
export async function use${n}(): Promise<void> {
  await queue.enqueue(db, job${n}, { id: ${n}, name${n}: 'n' }, { uniqueKey: 'k' });
  await queue.workflows.signal(db, { job: job${n}, uniqueKey: 'k' }, signal${n}, { by: 'Ada', ok${n}: true });
  await queue.workflows.enqueueFlow(db, (flow) => {
    const one = flow.add(job${n}, { id: ${n}, name${n}: 'n' });
    flow.add(job${n}, { id: ${n}, name${n}: 'n' }, { after: [one] });
  });
}
/* end */
`;
}

/** With workflows, `step` is in the context of each handler. */
const queues = {
  plain: `import { handle } from 'drizzle-queue';
const queue = createQueue();`,
  workflows: `import { handlersFor, workflowsIn } from 'drizzle-queue';
import * as workflows from 'drizzle-queue/schema/workflows';
const queue = createQueue({ workflows: workflowsIn(workflows) });
const { handle } = handlersFor<typeof db, typeof queue>();`,
};

/** An app with so many kinds; without the library it has their schemas alone. */
function app(queue: keyof typeof queues, kindOf: (n: number) => string, library: boolean): string {
  const numbers = Array.from({ length: KINDS }, (_, n) => n);
  const text = `import {
  cancel, createQueue, createWorker, defineJob, defineSignal, NonRetryableError, snooze,
} from 'drizzle-queue';
import { z } from 'zod';
import { postgresJs as db } from './databases.ts';
${queues[queue]}
${numbers.map(kindOf).join('')}
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

describe(`what the types cost an app of ${KINDS} kinds`, { timeout: 120_000 }, () => {
  test.each([
    ['of jobs', 'plain', kind, MAX_PER_KIND],
    ['of jobs with steps in the context', 'workflows', kind, MAX_PER_KIND],
    ['of workflows', 'workflows', workflow, MAX_PER_WORKFLOW],
  ] as const)('%s', (what, queue, kindOf, most) => {
    const library = instantiations(app(queue, kindOf, true)) - instantiations(app(queue, kindOf, false));
    console.info(`${project}, ${what}: ${Math.round(library / KINDS)} per kind`);
    expect(library).toBeGreaterThan(0);
    expect(library / KINDS).toBeLessThan(most);
  });
});
