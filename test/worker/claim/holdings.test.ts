import { beforeEach, expect, test } from 'vitest';
import { Retries } from '../../../src/core/time/retries.ts';
import { WorkerEmitter } from '../../../src/core/worker/base/events.ts';
import type { Attempts } from '../../../src/core/worker/begin/attempts.ts';
import { Holdings } from '../../../src/core/worker/claim/holdings.ts';
import { addJob, clearTables, tables } from '../../queries/support/jobs.ts';
import { gate } from '../../support/gate.ts';
import { useTestDatabase } from '../../support/test-database.ts';

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));

test('another server that answers while jobs are given back may have forgotten ends as well', async () => {
  const answer = gate();
  let looks = 0;
  const holdings = new Holdings({
    db: {
      async execute(...sent: Parameters<typeof database.db.execute>) {
        const rows = await database.db.execute(...sent);
        if (++looks === 1) await answer.opened;
        return rows;
      },
    },
    tables,
    holder: { queue: 'q', workerId: 1 },
    // It knows of none of the jobs, and one of another claim runs.
    attempts: { jobs: [], size: 1 } as unknown as Attempts,
    events: new WorkerEmitter(),
    retries: new Retries(),
    onDue: () => undefined,
  });
  const claimed = { kinds: [], limit: 1, among: false, sawEnd: false, leftOut: false, endMs: 0 };
  await holdings.answerTo(Promise.resolve({ ...claimed, jobs: [{} as never] }));
  holdings.noteOtherServer();
  const released = holdings.releaseUnknown();
  await expect.poll(() => looks).toBe(1);
  // Its look is over, and the next server does not know that this job has ended.
  holdings.noteOtherServer();
  const id = await addJob(database.client, { workerId: 1, attempt: 2, fence: 2 });
  answer.open();
  expect(await released).toBe(0);
  expect(holdings.releaseInMs).toBe(0);
  expect(await holdings.releaseUnknown()).toBe(1);
  const [row] = await database.client`select worker_id, attempt from queue_jobs where id = ${id}`;
  expect(row).toEqual({ worker_id: null, attempt: 2 });
});
