import { readdir, readFile } from 'node:fs/promises';
import { drizzle } from 'drizzle-orm/pglite';
import { createQueue, defineJob, drain, handle } from 'drizzle-queue';
import { queueMetrics } from 'drizzle-queue/schema/metrics';
import { expect, test } from 'vitest';
import { openPglite } from '../../support/pglite.ts';

const count = defineJob('count', { queue: 'numbers' });

test('figures work on PGlite, which has one connection', { timeout: 240_000 }, async () => {
  const client = await openPglite();
  try {
    const folder = new URL('../../../drizzle-metrics/', import.meta.url);
    for (const name of (await readdir(folder)).filter((name) => name.endsWith('.sql'))) {
      await client.exec(await readFile(new URL(name, folder), 'utf8'));
    }
    const db = drizzle({ client });
    const queue = createQueue({ metrics: queueMetrics });
    await queue.enqueue(db, count, undefined);
    await drain(db, { queue, handlers: [handle(count, () => undefined)], deadlineMs: 30_000 });
    await queue.enqueue(db, count, undefined, { delayMs: 60_000 });
    const { kinds, rates, estimated } = await queue.stats(db);
    expect(estimated).toBe(false);
    expect(kinds).toMatchObject([{ queue: 'numbers', kind: 'count', scheduled: 1, workers: 0 }]);
    expect(rates?.kinds).toMatchObject([{ kind: 'count', completed: 1 }]);
    expect((await queue.vitals(db)).severity).not.toBe('error');
  } finally {
    await client.close();
  }
});
