import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { AppLocks } from './app-locks.ts';
import { violations } from './invariants.ts';
import { durations, quantile, settlings } from './latency.ts';
import { Load } from './load.ts';
import { print, printTimes, recoveries, seconds, startRespiteIsOver } from './recovery.ts';
import { size } from './size.ts';
import { useStage } from './stage.ts';

const stage = useStage();
const KILLS = size(4, 12);
const LOCKED_MS = 2_500;

test(`rows locked by transactions of the app for ${seconds(LOCKED_MS)}, and ${KILLS} workers killed meanwhile: they cost only themselves`, {
  timeout: 60_000 + KILLS * 30_000,
}, async () => {
  const { ledger, fleet, url } = stage;
  await Promise.all([fleet.startMany(2), fleet.start({ driver: 'postgres.js' })]);
  await startRespiteIsOver(ledger);
  const load = new Load(ledger);
  const locks = new AppLocks({ url, heldMs: LOCKED_MS });
  const freeTimes: number[] = [];
  const lockedTimes: number[] = [];
  for (let kills = 0; kills < KILLS; ) {
    await delay(500 + Math.random() * 1_500);
    const victim = fleet.living[Math.floor(Math.random() * fleet.living.length)];
    if (victim === undefined) throw new Error('no worker lives');
    const killedAtMs = await victim.kill();
    const held = await ledger.heldBy(victim.workerId);
    const replacement = fleet.start({ driver: kills % 3 === 0 ? 'postgres.js' : 'node-postgres' });
    for (const [id, ms] of await recoveries(ledger, fleet, victim, held, killedAtMs)) {
      const times = locks.met(id, killedAtMs, killedAtMs + ms) ? lockedTimes : freeTimes;
      times.push(ms);
    }
    await replacement;
    if (held.length > 0) kills++;
  }
  await locks.end();
  await load.end();
  await ledger.settled();
  expect(await fleet.stop()).toEqual([0, 0, 0]);

  const all = settlings(fleet);
  const met = (one: (typeof all)[number]) => locks.met(one.job, one.fromMs, one.toMs);
  const locked = durations(all.filter(met));
  const free = durations(all.filter((one) => !met(one)));
  print(
    `${locks.taken.length} transactions held their locks for ${seconds(LOCKED_MS)}: ${locked.length} ends waited for one, ` +
      `at most ${seconds(quantile(locked, 1))}; of ${free.length} others 95 % were written within ${seconds(quantile(free, 0.95))}, ` +
      `all within ${seconds(quantile(free, 1))}`,
  );
  printTimes('SIGKILL beside locked rows, from the kill to the start elsewhere', freeTimes);
  if (lockedTimes.length > 0) printTimes('the same of the locked rows', lockedTimes);
  expect(await violations(ledger, fleet)).toEqual([]);
  // Otherwise nothing was shown.
  expect(locked.length).toBeGreaterThan(10);
  expect(quantile(locked, 0.5)).toBeGreaterThan(LOCKED_MS / 10);
  expect(quantile(free, 0.95)).toBeLessThan(LOCKED_MS / 5);
  expect(Math.max(...freeTimes)).toBeLessThanOrEqual(5_000);
});
