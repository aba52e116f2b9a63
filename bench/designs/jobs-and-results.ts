import { gt, sql } from 'drizzle-orm';
import { holdRows } from 'drizzle-queue/skip-locked';
import { createTables, jobs, runJob } from '../../examples/seeds/jobs-and-results.ts';
import { type Design, oneByOne } from './design.ts';

/** Nishimura (2017): decrement, work under the row's lock, insert the result, delete the job, all in one transaction. */
export const jobsAndResults: Design = {
  name: 'jobs and results',
  create: (db) => db.execute(createTables),
  add: (db, count) =>
    db.execute(sql`insert into jobs (job_property1) select 'en' from generate_series(1, ${count}::int)`),
  clear: (db) => db.execute(sql`truncate jobs, results`),
  start: oneByOne(async (db, work) => {
    const job = await runJob(db, async () => {
      await work();
      return { language: 'en', words: '1' };
    });
    return job === undefined ? 'empty' : 'done';
  }),
};

/** What Nishimura gives a figure for: his first statement alone, committed. */
export const retrieval: Design = {
  ...jobsAndResults,
  name: 'retrieval',
  start: oneByOne(async (db) => {
    const [job] = await holdRows(db, jobs, {
      set: { retriesRemaining: sql`${jobs.retriesRemaining} - 1` },
      where: gt(jobs.retriesRemaining, 0),
      orderBy: jobs.timeCreated,
    });
    return job === undefined ? 'empty' : 'done';
  }),
};
