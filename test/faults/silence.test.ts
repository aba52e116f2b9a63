import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { light } from './fixtures/ledger-jobs.ts';
import { declaredGone, overlaps, violations } from './invariants.ts';
import { Load } from './load.ts';
import { printTimes, resumeTimes, startRespiteIsOver } from './recovery.ts';
import { monotonicMs } from './run-log.ts';
import { size } from './size.ts';
import { useStage } from './stage.ts';
import { type Silence, TcpProxy } from './tcp-proxy.ts';

const stage = useStage();
let proxy: TcpProxy;
beforeEach(async () => {
  proxy = await TcpProxy.start(Number(new URL(stage.url).port));
});
afterEach(() => proxy.close());

const SILENCES = ['both ways', 'to the client', 'to the server'] as const satisfies readonly Silence[];
/** What silence may cost: a deadline, and the time to find another connection. */
const RECOVERY_MS = 15_000;
const ROUNDS = size(2, 12);
const LASTING_MS = size(6_000, 20_000);

/** What was enqueued for so long after the fault must have ended, too: longer than any deadline at rest. */
const WATCHED_S = 8;
/** Longer than a worker without a session may go unseen, and than its peers need to find that out. */
const PATIENT_S = 40;

/** Does it, and waits until all is well again; answers the longest that a job has taken since then, in milliseconds. */
async function slowestAfter(fault: () => void, watchedS = WATCHED_S): Promise<number> {
  const { ledger, fleet } = stage;
  const since = await ledger.value('select clock_timestamp()::text');
  fault();
  await until(
    async () => {
      fleet.checkRunning();
      const [row] = await ledger.rows<{ watched: boolean }>(
        `select exists (select from queue_results where created_at > $1::timestamptz + interval '${watchedS} seconds')
           and not exists (select from queue_jobs where created_at < $1::timestamptz + interval '${watchedS} seconds') as watched`,
        [since],
      );
      return row?.watched === true;
    },
    { timeoutMs: 120_000, intervalMs: 100 },
  );
  const [row] = await ledger.rows<{ ms: number }>(
    `select (extract(epoch from max(finished_at - created_at)) * 1000)::float8 as ms from queue_results
     where created_at > $1::timestamptz - interval '1 second'`,
    [since],
  );
  return row?.ms ?? Number.NaN;
}

/** The first two in a short run. */
const SETUPS = [
  { driver: 'node-postgres', listen: false },
  { driver: 'postgres.js', listen: true },
  { driver: 'node-postgres', listen: true },
  { driver: 'postgres.js', listen: false },
] as const;

describe.each(SETUPS.slice(0, size(2, SETUPS.length)))(
  'on $driver, listen: $listen, connections that are forgotten without a word',
  ({ driver, listen }) => {
    const settings = () => ({ url: proxy.url(stage.url), driver, worker: { listen } });

    test(`one after the other, ${ROUNDS} times: the worker goes on within 15 s`, {
      timeout: 60_000 + ROUNDS * 60_000,
    }, async () => {
      const { ledger, fleet } = stage;
      const worker = await fleet.start(settings());
      await startRespiteIsOver(ledger);
      const load = new Load(ledger, { kinds: [light], maxWorkMs: 50 });
      await resumeTimes(fleet, [worker], 0);
      const times: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const silence = SILENCES[round % SILENCES.length] ?? 'both ways';
        times.push(await slowestAfter(() => proxy.forget(silence, 'one')));
      }
      await load.end();
      await ledger.settled();
      expect(await fleet.stop()).toEqual([0]);
      printTimes(`one connection of ${driver} forgotten, the slowest job`, times);
      expect(Math.max(...times)).toBeLessThan(RECOVERY_MS);
      expect(await violations(ledger, fleet)).toEqual([]);
      expect(overlaps(fleet)).toEqual([]);
    });

    test('all at once, each way: the worker goes on within 15 s', { timeout: 300_000 }, async () => {
      const { ledger, fleet } = stage;
      const worker = await fleet.start(settings());
      const load = new Load(ledger, { kinds: [light], maxWorkMs: 50 });
      await resumeTimes(fleet, [worker], 0);
      const times: number[] = [];
      for (const silence of SILENCES) times.push(await slowestAfter(() => proxy.forget(silence, 'all')));
      await load.end();
      await ledger.settled();
      expect(await fleet.stop()).toEqual([0]);
      printTimes(`all connections of ${driver} forgotten, the slowest job`, times);
      expect(Math.max(...times)).toBeLessThan(RECOVERY_MS);
      expect(await violations(ledger, fleet)).toEqual([]);
      expect(overlaps(fleet)).toEqual([]);
    });

    test('beside a worker whose network is well: neither is declared gone, and each job begins once', {
      timeout: 60_000 + SILENCES.length * 120_000,
    }, async () => {
      const { ledger, fleet } = stage;
      const workers = [await fleet.start(settings()), await fleet.start({ driver, worker: { listen } })];
      const load = new Load(ledger, { kinds: [light], maxWorkMs: 50 });
      await resumeTimes(fleet, workers, 0);
      const times: number[] = [];
      for (const silence of SILENCES.slice(0, size(1, SILENCES.length))) {
        times.push(await slowestAfter(() => proxy.forget(silence, 'all'), PATIENT_S));
      }
      const backAtMs = monotonicMs();
      await resumeTimes(fleet, workers, backAtMs);
      await load.end();
      await ledger.settled();
      expect(await fleet.stop()).toEqual([0, 0]);
      printTimes(`all connections of one of two workers of ${driver} forgotten, the slowest job`, times);
      expect(Math.max(...times)).toBeLessThan(RECOVERY_MS);
      expect(declaredGone(fleet)).toEqual([]);
      const begun = fleet.entries().flatMap(({ event, job }) => (event === 'begun' ? [job] : []));
      expect(begun).toHaveLength(new Set(begun).size);
      expect(await violations(ledger, fleet)).toEqual([]);
    });

    test('all at once, and new ones are silent for a while: it goes on within 15 s of their return', {
      timeout: 300_000,
    }, async () => {
      const { ledger, fleet } = stage;
      const worker = await fleet.start(settings());
      const load = new Load(ledger, { kinds: [light], maxWorkMs: 50 });
      await resumeTimes(fleet, [worker], 0);
      proxy.forget('both ways', 'all');
      proxy.weather = 'silent';
      await delay(LASTING_MS);
      const time = await slowestAfter(() => {
        proxy.weather = 'fine';
      });
      await load.end();
      await ledger.settled();
      expect(await fleet.stop()).toEqual([0]);
      printTimes(`all connections of ${driver} forgotten for ${LASTING_MS / 1_000} s, from the return on`, [
        time,
      ]);
      expect(time).toBeLessThan(RECOVERY_MS);
      expect(await violations(ledger, fleet)).toEqual([]);
      expect(overlaps(fleet)).toEqual([]);
    });
  },
);
