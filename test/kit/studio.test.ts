import { createQueue, defineJob, drain, fixedBackoff, handle, unvalidated } from 'drizzle-queue';
import { expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { schemaEntry, useKitProjects } from './kit-project.ts';
import { startStudio } from './studio.ts';

const database = useTestDatabase();
const project = useKitProjects();
const queue = createQueue();
const send = defineJob('send', {
  payload: unvalidated<{ to: string }>(),
  queue: 'mail',
  backoff: fixedBackoff(60_000), // its second attempt does not come within the drain
});

test('Drizzle Studio shows the tables, and what is in them can be read', async () => {
  await queue.enqueue(database.db, send, { to: 'Ada' });
  await drain(database.db, {
    queue,
    handlers: [handle(send, () => Promise.reject(new Error('no such address')))],
    deadlineMs: 20_000,
  });
  const studio = await startStudio(
    await project({ schema: `export * from '${schemaEntry}';`, databaseUrl: database.url }),
  );
  try {
    expect(await studio.open()).toMatchObject({
      dialect: 'postgresql',
      schemaFiles: [{ name: 'schema.ts' }],
    });
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d/);
    expect(await studio.rows('select * from "queue_jobs"')).toEqual([
      expect.objectContaining({
        queue: 'mail',
        kind: 'send',
        payload: { to: 'Ada' },
        attempt: 1,
        worker_id: null,
        run_at: time,
        created_at: time,
        errors: [expect.objectContaining({ attempt: 1, message: 'no such address' })],
      }),
    ]);
    for (const table of ['queue_results', 'queue_workers', 'queue_pauses'])
      expect(await studio.rows(`select * from "${table}"`)).toEqual([]);
  } finally {
    await studio.stop();
  }
});
