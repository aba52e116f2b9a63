import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { flaky, ordinary, snoozing } from './fixtures/ledger-jobs.ts';
import { declaredGone, overlaps, violations } from './invariants.ts';
import { Load } from './load.ts';
import { print, printTimes, resumeTimes, seconds } from './recovery.ts';
import { monotonicMs } from './run-log.ts';
import { size } from './size.ts';
import { useServerStage } from './stage.ts';

const stage = useServerStage();

describe('PostgreSQL stopped with immediate', () => {
  const CRASHES = size(3, 5);

  test(`and started again under load, ${CRASHES} times: workers reconnect, nobody is declared gone`, {
    timeout: 240_000,
  }, async () => {
    const { ledger, fleet, server } = stage;
    const workers = await fleet.startMany(3);
    const load = new Load(ledger, { maxWorkMs: 1_000, perSecond: 40 });
    const times: number[] = [];
    for (let crashes = 0; crashes < CRASHES; crashes++) {
      // Random moments are the point.
      await delay(500 + Math.random() * 1_500);
      const { failures } = load;
      await server.crash();
      // Every other time it is back at once, perhaps before the app has noticed.
      if (crashes % 2 === 0) await until(() => load.failures > failures);
      await server.restart();
      times.push(...(await resumeTimes(fleet, workers, monotonicMs())));
    }
    await load.end();
    await ledger.settled();
    expect(await fleet.stop()).toEqual([0, 0, 0]);
    expect(load.failures).toBeGreaterThan(0);
    printTimes(`${CRASHES} crashes of PostgreSQL, from its return to the next start in each worker`, times);
    expect(await violations(ledger, fleet, { takeovers: CRASHES })).toEqual([]);
    expect(overlaps(fleet)).toEqual([]);
    expect(declaredGone(fleet)).toEqual([]);
  });

  const AWAY_MS = size(10_000, 30_000);

  test(`for ${AWAY_MS / 1000} s: workers wait, reconnect and go on, on both drivers`, {
    timeout: 240_000,
  }, async () => {
    const { ledger, fleet, server } = stage;
    // postgres.js throws where nobody can catch it when a connection breaks inside a transaction (porsager/postgres #1066).
    const kinds = [ordinary, flaky, snoozing];
    const workers = await Promise.all([
      fleet.start(),
      fleet.start(),
      fleet.start({ driver: 'postgres.js', kinds: kinds.map(({ kind }) => kind) }),
    ]);
    const load = new Load(ledger, { maxWorkMs: 1_000, perSecond: 40, kinds });
    await resumeTimes(fleet, workers, 0);
    await server.crash();
    await delay(AWAY_MS);
    fleet.checkRunning();
    await server.restart();
    const times = await resumeTimes(fleet, workers, monotonicMs());
    await load.end();
    await ledger.settled();
    expect(await fleet.stop()).toEqual([0, 0, 0]);
    print(`PostgreSQL was away for ${seconds(AWAY_MS)}`);
    printTimes('from its return to the next start in each worker', times);
    expect(await violations(ledger, fleet, { takeovers: 1 })).toEqual([]);
    expect(overlaps(fleet)).toEqual([]);
    expect(declaredGone(fleet)).toEqual([]);
  });
});
