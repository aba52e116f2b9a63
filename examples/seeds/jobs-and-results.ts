/**
 * Jobs and results in one transaction: take a job and spend one of its retries, work while the row is locked, insert the result, delete
 * the job, commit. When the work fails, commit the spent retry alone. At the end, what the article is about: the results are in
 * the database, so they can be asked.
 *
 * After Toshiro Nishimura, "Job Queues in PostgreSQL with SKIP LOCKED" (2017).
 */
import { count, eq, gt, sql } from 'drizzle-orm';
import { bigint, bigserial, integer, pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import { holdRows } from 'drizzle-queue/skip-locked';
import { runConsumers, takeAll } from './stage/consumers.ts';
import type { Db } from './stage/database.ts';
import { type Program, runProgram } from './stage/run-program.ts';
import { sayTable } from './stage/say-table.ts';
import { checkTakenOnce } from './stage/taken-once.ts';

/** The article's tables: a job is a text in a language, a result its words. */
export const jobs = pgTable('jobs', {
  jobId: bigserial('job_id', { mode: 'number' }).primaryKey(),
  retriesRemaining: integer('retries_remaining').notNull().default(3),
  timeCreated: timestamp('time_created').notNull().defaultNow(),
  language: text('job_property1'),
  text: text('job_property2'),
});
export const results = pgTable('results', {
  // The article lets it refer to `jobs (job_id)`, which would keep the job from being deleted.
  jobId: bigint('job_id', { mode: 'number' }).primaryKey(),
  language: text('result_detail1').notNull(),
  words: text('result_detail2').notNull(),
});
export const createTables = sql`
  create table jobs (job_id bigserial primary key, retries_remaining int not null default 3,
    time_created timestamp without time zone default now() not null, job_property1 text, job_property2 text);
  create index jobs_time on jobs (time_created);
  create index jobs_retries on jobs (retries_remaining);
  create table results (job_id bigint primary key, result_detail1 text not null, result_detail2 text not null)`;

type Job = typeof jobs.$inferSelect;
type Result = Omit<typeof results.$inferInsert, 'jobId'>;

/** Runs the oldest job in one transaction. Returns it, or `undefined` when there is none. */
export async function runJob(
  db: Db,
  doWork: (job: Job) => Result | Promise<Result>,
): Promise<Job | undefined> {
  return await db.transaction(async (tx) => {
    const [job] = await holdRows(tx, jobs, {
      set: { retriesRemaining: sql`${jobs.retriesRemaining} - 1` },
      where: gt(jobs.retriesRemaining, 0),
      orderBy: jobs.timeCreated,
    });
    if (job === undefined) return undefined;
    let result: Result;
    try {
      result = await doWork(job);
    } catch {
      return job;
    }
    await tx.insert(results).values({ jobId: job.jobId, ...result });
    await tx.delete(jobs).where(eq(jobs.jobId, job.jobId));
    return job;
  });
}

const JOBS = 120;

/** Counts words. Every tenth text is hard: it takes a second try. Number 60 is in no language, and fails each time. */
function countWords({ jobId, retriesRemaining, language, text }: Job): Result {
  if (language === null || text === null) throw new Error('in no language');
  if (jobId % 10 === 0 && retriesRemaining === 2) throw new Error('hard');
  return { language, words: String(text.split(' ').length) };
}

export const main: Program = async ({ db, url, say }) => {
  await db.execute(createTables);
  const texts = Array.from({ length: JOBS }, (_, index) => ({
    language: index + 1 === 60 ? null : ['de', 'en', 'pt'][index % 3],
    text: 'word '.repeat(1 + (index % 7)).trimEnd(),
  }));
  await db.insert(jobs).values(texts);

  const runs = await runConsumers(url, 4, (db) => takeAll(() => runJob(db, countWords)));
  say(`${runs.flat().length} runs for ${JOBS} jobs.`);

  // The analyst's side: ordinary tables, and SQL.
  const words = sql`${results.words}::int`;
  const byLanguage = await db
    .select({
      language: results.language,
      texts: count(),
      words: sql<number>`sum(${words})::int`,
      longest: sql<number>`max(${words})`,
    })
    .from(results)
    .groupBy(results.language)
    .orderBy(results.language);
  sayTable(say, byLanguage);

  const done = await db.select({ id: results.jobId }).from(results);
  const left = await db.select({ id: jobs.jobId, retries: jobs.retriesRemaining }).from(jobs);
  for (const { id, retries } of left) say(`Job ${id} is left, with ${retries} retries.`);
  checkTakenOnce(
    [...done, ...left].map(({ id }) => id),
    JOBS,
  );
  say('Every job has either its one result or no retry left.');
};

await runProgram(import.meta, main);
