import { setTimeout as delay } from 'node:timers/promises';
import { drizzle } from 'drizzle-orm/node-postgres';
import { createQueue } from 'drizzle-queue';
import { expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { violations } from './invariants.ts';
import { durations, quantile, settlings } from './latency.ts';
import { Load } from './load.ts';
import { print, seconds } from './recovery.ts';
import { size } from './size.ts';
import { useStage } from './stage.ts';

const stage = useStage();
const LOAD_MS = size(8_000, 30_000);
/** Of so many jobs, one refuses only its claims, and another every change. */
const BAD = 50;

/** The app's own trigger, which cannot be passed until it is dropped. */
const TRIGGERS = `
  create function refuse_claim() returns trigger language plpgsql as $$ begin
    if (new.payload ->> 'n')::int % ${BAD} = 11 or
      (new.payload ->> 'n')::int % ${BAD} = 7 and old.worker_id is null and new.worker_id is not null then
      raise exception 'this change is refused';
    end if;
    return new;
  end $$;
  create trigger refuse_claim before update on queue_jobs for each row execute function refuse_claim()`;

test(`one of ${BAD / 2} jobs refuses its claim, under load for ${LOAD_MS / 1000} s: it costs only itself`, {
  timeout: 240_000,
}, async () => {
  const { ledger, fleet } = stage;
  await Promise.all([fleet.startMany(2), fleet.start({ driver: 'postgres.js' })]);
  await ledger.pool.query(TRIGGERS);
  const load = new Load(ledger);
  const isBad = (n: number) => n % BAD === 7 || n % BAD === 11;
  await delay(LOAD_MS);
  await load.end();

  // All others have ended before anybody mends the trigger.
  const good = [...ledger.acknowledged].filter((n) => !isBad(n));
  await until(async () => (await ledger.count('queue_results')) === good.length, { timeoutMs: 60_000 });
  const bad = await ledger.count('queue_jobs');
  expect(bad).toBe(ledger.acknowledged.size - good.length);
  expect(bad).toBeGreaterThan(0);
  // Those that allow it are parked.
  const parked = `select id from queue_jobs where run_at = 'infinity'`;
  const wanted = [...ledger.acknowledged].filter((n) => n % BAD === 7).length;
  await until(async () => (await ledger.rows(parked)).length === wanted, { timeoutMs: 60_000 });

  await ledger.pool.query('drop function refuse_claim() cascade');
  const db = drizzle({ client: ledger.pool });
  const parkedIds = async () => (await ledger.rows<{ id: string }>(parked)).map(({ id }) => Number(id));
  const { due } = await createQueue().runNowMany(db, await parkedIds());
  // A worker that was just looking for the row that refuses may have claimed or parked one since the drop.
  expect(due).toBeGreaterThan(0);
  expect(due).toBeLessThanOrEqual(wanted);
  await until(async () => {
    const ids = await parkedIds();
    if (ids.length > 0) await createQueue().runNowMany(db, ids);
    return ids.length === 0;
  });
  await ledger.settled(120_000);
  expect(await fleet.stop()).toEqual([0, 0, 0]);
  const jobs = await ledger.rows<{ n: number; job_id: string }>('select n, job_id from ledger_enqueued');
  const refused = new Set(jobs.filter(({ n }) => isBad(n)).map(({ job_id }) => Number(job_id)));
  const others = durations(settlings(fleet).filter(({ job }) => !refused.has(job)));
  print(
    `${bad} rows refused their claims, ${wanted} of which were parked; of ${others.length} other ends all were ` +
      `written within ${seconds(quantile(others, 1))}`,
  );
  expect(await violations(ledger, fleet)).toEqual([]);
  expect(quantile(others, 1)).toBeLessThan(5_000);
});
