import { setTimeout as delay } from 'node:timers/promises';
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
/** One of so many jobs is bad. */
const BAD = 25;
/** The results of such a job are refused so often. */
const REFUSALS = 2;

/** The app's own triggers: one that refuses a result some times, and one that refuses whatever ends the hold of a job. */
const TRIGGERS = `
  create function refuse_result() returns trigger language plpgsql as $$ begin
    if (new.payload ->> 'n')::int % ${BAD} = 7 and jsonb_array_length(new.errors) < ${REFUSALS} then
      raise exception 'this result is refused';
    end if;
    return new;
  end $$;
  create trigger refuse_result before insert on queue_results for each row execute function refuse_result();
  create function refuse_end() returns trigger language plpgsql as $$ begin
    if (old.payload ->> 'n')::int % ${4 * BAD} = 11 and old.worker_id is not null
      and (tg_op = 'DELETE' or new.worker_id is null) then
      raise exception 'this end is refused';
    end if;
    return coalesce(new, old);
  end $$;
  create trigger refuse_end before update or delete on queue_jobs for each row execute function refuse_end()`;

test(`one of ${BAD} jobs is refused by a trigger of the app, under load for ${LOAD_MS / 1000} s: it costs only itself`, {
  timeout: 240_000,
}, async () => {
  const { ledger, fleet } = stage;
  await Promise.all([fleet.startMany(2), fleet.start({ driver: 'postgres.js' })]);
  await ledger.pool.query(TRIGGERS);
  const load = new Load(ledger);
  const isBad = (n: number) => n % BAD === 7 || n % (4 * BAD) === 11;
  await delay(LOAD_MS);
  await load.end();

  // All others have ended before anybody mends the triggers.
  const good = [...ledger.acknowledged].filter((n) => n % (4 * BAD) !== 11);
  const ended = `select count(*) from queue_results where (payload ->> 'n')::int % ${4 * BAD} <> 11`;
  await until(async () => Number(await ledger.value(ended)) === good.length, { timeoutMs: 60_000 });
  const left = await ledger.count('queue_jobs');
  expect(left).toBe(ledger.acknowledged.size - good.length);
  expect(left).toBeGreaterThan(0);
  // A result is refused to one that calls `complete`, or else to its worker.
  const refused = `select count(*) from queue_results where errors -> 0 ->> 'message' like '%this result is refused%'`;
  expect(Number(await ledger.value(refused))).toBeGreaterThan(0);

  await ledger.pool.query('drop function refuse_end() cascade; drop function refuse_result() cascade');
  await ledger.settled(120_000);
  expect(await fleet.stop()).toEqual([0, 0, 0]);
  const jobs = await ledger.rows<{ n: number; job_id: string }>('select n, job_id from ledger_enqueued');
  const bad = new Set(jobs.filter(({ n }) => isBad(n)).map(({ job_id }) => Number(job_id)));
  const others = durations(settlings(fleet).filter(({ job }) => !bad.has(job)));
  print(
    `${bad.size} bad rows, of which ${left} could not end at all; of ${others.length} other ends 95 % were written within ` +
      `${seconds(quantile(others, 0.95))}, all within ${seconds(quantile(others, 1))}`,
  );
  expect(await violations(ledger, fleet)).toEqual([]);
  expect(quantile(others, 0.95)).toBeLessThan(500);
  expect(quantile(others, 1)).toBeLessThan(5_000);
});
