import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, defineJob, handle, unvalidated } from 'drizzle-queue';
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

const QUEUES = 1_000;

const database = useTestDatabase();
const queue = createQueue();
const names = Array.from({ length: QUEUES }, (_, n) => `tenant-${n}`);
const work = defineJob('work', { payload: unvalidated<string>(), queue: 'tenant-0' });

test('a worker of a thousand queues claims only where a job is, and asks seldom', async () => {
  const warnings: string[] = [];
  const onWarning = ({ name }: Error) => void warnings.push(name);
  process.on('warning', onWarning);
  const sent: { text: string; parameters: string }[] = [];
  const client = postgres(database.url, {
    max: 4,
    debug: (_, text, parameters) => sent.push({ text, parameters: parameters.map(String).join(' ') }),
  });
  const begun = new Set<string>();
  const worker = createWorker(drizzle({ client }), {
    queue,
    handlers: [handle(work, ({ payload }) => void begun.add(payload))],
    queues: Object.fromEntries(names.map((name) => [name, {}])),
  });
  onTestFinished(async () => {
    process.off('warning', onWarning);
    await worker.stop();
    await client.end();
  });
  let completed = 0;
  worker.on('completed', () => completed++);
  const idle = new Set<string>();
  worker.on('idle', (event) => idle.add(event.queue));
  const listening = nextEvent(worker, 'listening');
  await worker.start();
  await listening;
  await until(() => idle.size === QUEUES);
  const about = (word: string, from = 0) => sent.slice(from).filter(({ text }) => text.includes(word));
  // Not one claim for each at the start.
  expect(about('band(priority int2')).toEqual([]);

  const before = sent.length;
  const startMs = performance.now();
  await until(() => about('due_at', before).length >= 4);
  const seconds = (performance.now() - startMs) / 1_000;
  // A look a second, a few sweeps of a hundred queues each, and what a worker of one queue sends.
  expect((sent.length - before) / seconds).toBeLessThan(12);
  expect(about('band(priority int2')).toEqual([]);

  // A queue that becomes idle again is looked at alone, not all of them.
  const asked = sent.length;
  for (const name of names.slice(0, 5)) await queue.enqueue(database.db, { ...work, queue: name }, name);
  await until(() => begun.size === 5);
  const alone = () => about('due_at', asked).filter(({ parameters }) => !parameters.includes('tenant-999'));
  await until(() => alone().length > 0);
  expect(alone().every(({ parameters }) => /tenant-[0-4]"/.test(parameters))).toBe(true);

  // Each queue settles its own job: those statements are not the stop's.
  await until(() => completed === 5);
  const stopping = sent.length;
  await worker.stop();
  // No statement per queue.
  expect(sent.length - stopping).toBeLessThan(10);
  expect(warnings).toEqual([]);
}, 240_000);
