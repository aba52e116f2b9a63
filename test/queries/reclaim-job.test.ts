import { createQueue, defineJob } from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import { expect, test } from 'vitest';
import { reclaimJob } from '../../src/queries/reclaim-job.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work');

test('claims again what a rollback has set free, unless somebody else has claimed it since', async () => {
  const { id } = await queue.enqueue(database.db, work);
  const claimed = { id, queue: 'default', fence: 1 };
  const [one = database, two = database] = await database.connect(2);
  const answers = await Promise.all([one, two].map(({ db }) => reclaimJob(db, queue.tables, claimed)));
  expect(answers.sort()).toEqual([false, true]);
  const [job] = await database.db.select().from(queueJobs);
  expect(job).toMatchObject({ attempt: 1, fence: 1, workerId: null });
});
