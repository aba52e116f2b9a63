import { randomBytes } from 'node:crypto';
import { importJobs } from 'drizzle-queue/import';
import { describe, expect, test } from 'vitest';
import type { FaultPoint } from '../../src/core/sql/fault-point.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { mapping } from './mail.ts';
import { Program } from './process.ts';
import { fill, type GivenJob, type Place, remainingSorted, SYSTEMS, type System, work } from './systems.ts';

const HOUR_MS = 3_600_000;
const WAITING = 8_000;
const DELAYED = 1_500;
const RETRYING = 500;

/** Where an importer dies in these tests. */
const POINTS: readonly FaultPoint[] = ['import: held', 'import: written', 'import: dropped'];

/** Tests the importer with 10,000 jobs of one of {@link SYSTEMS}, and beside its worker. */
export function testSystem(name: string, redis?: { readonly url: string }): void {
  const system = SYSTEMS[name];
  if (system === undefined) throw new Error(`There is no system ${name}`);

  describe(`10,000 jobs of ${system.title}`, () => {
    const database = useTestDatabase();

    test('a dry run changes nothing; an importer is killed at each step, and then all are here, once', async () => {
      const place = placeOf(database.url, redis?.url);
      const base = Math.ceil(Date.now() / 1_000) * 1_000;
      const failing = given(system, 0, RETRYING);
      const waiting = given(system, RETRYING, WAITING);
      const delayed = given(system, RETRYING + WAITING, DELAYED, (n) => base + HOUR_MS + n * 1_000);
      await fill(system, place, { failing, jobs: [...waiting, ...delayed] });
      const all = [...failing, ...waiting, ...delayed];
      expect(await remainingSorted(system, place, database.client)).toEqual(all.map(({ n }) => n));

      const { source, close } = system.open(place);
      const planned = await importJobs(database.db, source, mapping, { dryRun: true });
      const counts = {
        name: 'mail',
        kind: 'send-mail',
        waiting: WAITING,
        delayed: DELAYED,
        retrying: RETRYING,
        left: 0,
      };
      expect(planned).toEqual({
        dryRun: true,
        imported: all.length,
        bounded: 0,
        left: 0,
        active: 0,
        names: [counts],
        leftJobs: [],
      });
      expect(await remainingSorted(system, place, database.client)).toEqual(all.map(({ n }) => n));
      expect(await rowsOf()).toEqual([]);

      for (const [index, killAt] of POINTS.entries()) {
        const options = { system: name, place, batchSize: 400, killAt, times: index + 2 };
        expect(await Program.own('import', options).dead()).toBe('SIGKILL');
        const [some] = await database.client<
          { some: number }[]
        >`select count(*)::int as some from queue_jobs`;
        expect(some?.some).toBeGreaterThan(0);
        expect(some?.some).toBeLessThan(all.length);
      }
      const progress: number[] = [];
      const report = await importJobs(database.db, source, mapping, {
        onProgress: ({ imported }) => progress.push(imported),
      });
      await close();
      expect(report).toMatchObject({ dryRun: false, left: 0, active: 0, leftJobs: [] });
      expect(progress.at(-1)).toBe(report.imported);
      expect(progress.length).toBeGreaterThan(1);
      expect(await remainingSorted(system, place, database.client)).toEqual([]);

      const rows = await rowsOf();
      expect(rows.map(({ n }) => n)).toEqual(all.map(({ n }) => n));
      // One step there is one step here.
      expect(rows.map(({ priority }) => priority)).toEqual(all.map(({ priority }) => 5 + priority));
      expect(new Set(rows.map(({ max_attempts }) => max_attempts))).toEqual(new Set([5]));
      expect(rows.map(({ attempt }) => attempt)).toEqual(all.map(({ n }) => (n < RETRYING ? 1 : 0)));
      expect(new Set(rows.map(({ metadata }) => JSON.stringify(metadata)))).toEqual(new Set(['{}']));
      expect(rows.every(({ unique_key }) => unique_key === null)).toBe(true);
      const now = Date.now();
      expect(rows.slice(RETRYING, RETRYING + WAITING).every(({ run_at }) => run_at.getTime() <= now)).toBe(
        true,
      );
      // BullMQ is told how long to wait, from whenever it is told.
      for (const [index, { dueAt = 0 }] of delayed.entries()) {
        const runAt = rows[RETRYING + WAITING + index]?.run_at.getTime() ?? 0;
        expect(Math.abs(runAt - dueAt)).toBeLessThan(name.startsWith('bullmq') ? 60_000 : 1);
      }
      // It is from before the import, not of it.
      expect(
        rows.every(({ created_at, run_at }) => created_at.getTime() < base + HOUR_MS && created_at <= run_at),
      ).toBe(true);

      const again = system.open(place);
      expect(await importJobs(database.db, again.source, mapping)).toMatchObject({ imported: 0, left: 0 });
      await again.close();
    });

    interface Row {
      readonly n: number;
      readonly priority: number;
      readonly attempt: number;
      readonly max_attempts: number;
      readonly run_at: Date;
      readonly created_at: Date;
      readonly unique_key: string | null;
      readonly metadata: object;
    }

    async function rowsOf(): Promise<Row[]> {
      return await database.client<Row[]>`
        select (payload->>'number')::int as n, priority, attempt, max_attempts, run_at::text, created_at::text,
          unique_key, metadata::text
        from queue_jobs order by 1`.then((rows) =>
        rows.map((row) => ({
          ...row,
          run_at: new Date(row.run_at),
          created_at: new Date(row.created_at),
          metadata: JSON.parse(String(row.metadata)),
        })),
      );
    }
  });

  describe(`a worker of ${system.title} that goes on`, () => {
    const database = useTestDatabase();

    test('does what it has, and the import takes the others', async () => {
      const place = placeOf(database.url, redis?.url);
      const jobs = given(system, 0, 4_000);
      await fill(system, place, { failing: [], jobs });
      const worker = work(system, place);
      await until(() => worker.said.length > 40, { timeoutMs: 60_000 });
      const { source, close } = system.open(place);
      const report = await importJobs(database.db, source, mapping, { batchSize: 50 });
      await worker.stop();
      await close();
      expect(report.left).toBe(0);
      expect(report.imported).toBeGreaterThan(0);
      const rows = await database.client<
        { n: number }[]
      >`select (payload->>'number')::int as n from queue_jobs`;
      expect(rows).toHaveLength(report.imported);
      const imported = rows.map(({ n }) => n);
      const done = worker.said.map(Number);
      // A worker may have begun one when the import was over, and what it has done may still be there.
      const remaining = await system.remaining(place, database.client);
      const others = new Set([...done, ...remaining]);
      expect(imported.filter((n) => others.has(n))).toEqual([]);
      expect(new Set(done).size).toBe(done.length);
      expect([...others, ...imported].sort((a, b) => a - b)).toEqual(jobs.map(({ n }) => n));
    });
  });
}

function placeOf(url: string, redisUrl: string | undefined): Place {
  return { url, redisUrl, queue: `mail-${randomBytes(4).toString('hex')}` };
}

function given(
  { priorities }: System,
  first: number,
  count: number,
  dueAt: (n: number) => number | undefined = () => undefined,
): GivenJob[] {
  return Array.from({ length: count }, (_, index) => {
    const n = first + index;
    return { n, priority: priorities[n % priorities.length] ?? 0, dueAt: dueAt(n) };
  });
}
