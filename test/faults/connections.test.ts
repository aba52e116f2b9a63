import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { WORKER_NAME } from './fleet.ts';
import { declaredGone, overlaps, violations } from './invariants.ts';
import { Load } from './load.ts';
import { print, printTimes, resumeTimes, seconds, startRespiteIsOver } from './recovery.ts';
import { monotonicMs } from './run-log.ts';
import { size } from './size.ts';
import { useStage } from './stage.ts';
import { terminateSessions } from './terminate-sessions.ts';

const stage = useStage();

/** Ends the session of a random connection of a worker's; answers how many (0 or 1). */
async function terminateOne(): Promise<number> {
  const rows = await stage.ledger.rows(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name like $1 order by random() limit 1`,
    [`${WORKER_NAME}-%`],
  );
  return rows.length;
}

describe('pg_terminate_backend', () => {
  const STORM_MS = size(10_000, 30_000);

  test(`of random connections every 200 ms for ${STORM_MS / 1000} s: nothing is lost or doubled`, {
    timeout: 180_000,
  }, async () => {
    const { ledger, fleet } = stage;
    const workers = await fleet.startMany(4);
    await startRespiteIsOver(ledger);
    const load = new Load(ledger);
    let terminated = 0;
    let sessions = 0;
    const endMs = monotonicMs() + STORM_MS;
    for (let turn = 1; monotonicMs() < endMs; turn++) {
      if (turn % 10 === 0) sessions += await terminateSessions(ledger, workers[(turn / 10) % workers.length]);
      else terminated += await terminateOne();
      await delay(200);
    }
    const times = await resumeTimes(fleet, workers, monotonicMs());
    await load.end();
    await ledger.settled();
    expect(await fleet.stop()).toEqual([0, 0, 0, 0]);
    print(
      `${terminated} random connections and ${sessions} listening ones terminated in ${seconds(STORM_MS)}`,
    );
    printTimes('from the last of them to the next start in each worker', times);
    expect(terminated).toBeGreaterThan(STORM_MS / 1_000);
    expect(sessions).toBeGreaterThan(0);
    expect(await violations(ledger, fleet)).toEqual([]);
    expect(declaredGone(fleet)).toEqual([]);
  });

  test('of the connections that hold the locks: each worker is forgiven when it is back', {
    timeout: 120_000,
  }, async () => {
    const { ledger, fleet } = stage;
    const workers = await fleet.startMany(3);
    await until(() => workers.every((worker) => worker.entries().some(({ event }) => event === 'listening')));
    await startRespiteIsOver(ledger);
    const load = new Load(ledger, { maxWorkMs: 3_000, perSecond: 20 });
    for (let turn = 0; turn < 5; turn++) {
      await delay(1_500 + Math.random() * 1_000);
      const listening = fleet.entries().filter(({ event }) => event === 'listening').length;
      expect(await terminateSessions(ledger, workers[turn % 3])).toBeGreaterThan(0);
      await until(() => fleet.entries().filter(({ event }) => event === 'listening').length > listening);
    }
    await load.end();
    await ledger.settled();
    expect(await fleet.stop()).toEqual([0, 0, 0]);
    expect(await violations(ledger, fleet)).toEqual([]);
    expect(overlaps(fleet)).toEqual([]);
    expect(declaredGone(fleet)).toEqual([]);
  });
});
