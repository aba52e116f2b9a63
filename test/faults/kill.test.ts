import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { until } from '../support/until.ts';
import type { Fleet, FleetWorker } from './fleet.ts';
import { violations } from './invariants.ts';
import type { Ledger } from './ledger.ts';
import { Load } from './load.ts';
import { declaredGone, printTimes, recoveryTimes, startRespiteIsOver } from './recovery.ts';
import { size } from './size.ts';
import { useStage } from './stage.ts';

const stage = useStage();

/**
 * Measures recoveries; of each, also the longest time without what the machine took meanwhile: how much later than asked
 * for a process beside those of the test ran, and the server answered it.
 */
function measureRecoveries(ledger: Ledger, fleet: Fleet) {
  let takenMs = 0;
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const watch = async () => {
    while (!over.signal.aborted) {
      const beganMs = performance.now();
      await delay(20);
      await ledger.value('select 1').catch(() => undefined);
      // A quiet machine takes less.
      takenMs += Math.max(0, performance.now() - beganMs - 30);
    }
  };
  void watch();
  const times: number[] = [];
  const longest: number[] = [];
  const measure = async (victim: FleetWorker, held: readonly number[], killedAtMs: number) => {
    const takenBeforeMs = takenMs;
    const recovered = await recoveryTimes(ledger, fleet, victim, held, killedAtMs);
    times.push(...recovered);
    longest.push(Math.max(0, ...recovered) - (takenMs - takenBeforeMs));
  };
  return { times, longest, measure };
}

const KILLS = size(8, 30);

test(`SIGKILL of one of four workers, ${KILLS} times: its jobs begin elsewhere within 5 s`, {
  timeout: KILLS * 30_000,
}, async () => {
  const { ledger, fleet } = stage;
  // The suite is on node-postgres (see docs/workers.md); a death is the same on postgres.js.
  await Promise.all([fleet.startMany(3), fleet.start({ driver: 'postgres.js' })]);
  // Right after the server's start nobody is taken for dead by a free lock alone.
  await startRespiteIsOver(ledger);
  const load = new Load(ledger);
  const { times, longest, measure } = measureRecoveries(ledger, fleet);
  for (let kills = 0; kills < KILLS; ) {
    // Random moments are the point.
    await delay(200 + Math.random() * 1_300);
    const victim = fleet.living[Math.floor(Math.random() * fleet.living.length)];
    if (victim === undefined) throw new Error('no worker lives');
    const killedAtMs = await victim.kill();
    const held = await ledger.heldBy(victim.workerId);
    const replacement = fleet.start({ driver: kills % 4 === 0 ? 'postgres.js' : 'node-postgres' });
    await measure(victim, held, killedAtMs);
    await replacement;
    await declaredGone(ledger, victim);
    // One that was idle had nothing to recover.
    if (held.length > 0) kills++;
  }
  await load.end();
  await ledger.settled();
  expect(await fleet.stop()).toEqual([0, 0, 0, 0]);
  printTimes(`SIGKILL of one of four workers, ${KILLS} times, from the kill to the start elsewhere`, times);
  expect(await violations(ledger, fleet)).toEqual([]);
  expect(Math.max(...longest)).toBeLessThanOrEqual(5_000);
});

const YOUNG_KILLS = size(10, 40);

test(`SIGKILL of workers in their first second, ${YOUNG_KILLS} times: their jobs begin elsewhere within 5 s`, {
  timeout: YOUNG_KILLS * 30_000,
}, async () => {
  const { ledger, fleet } = stage;
  await fleet.startMany(2);
  await startRespiteIsOver(ledger);
  const load = new Load(ledger, { maxWorkMs: 500 });
  const { times, longest, measure } = measureRecoveries(ledger, fleet);
  let idle = 0;
  for (let kills = 0; kills < YOUNG_KILLS; ) {
    const victim = await fleet.spawn({ driver: kills % 4 === 0 ? 'postgres.js' : 'node-postgres' });
    const hasBegun = () => victim.entries().some(({ event }) => event === 'begun');
    // At random moments of its life, from its first job on, and from its process's beginning on.
    if ((kills + idle) % 3 === 0) await delay(Math.random() * 1_500);
    else {
      await until(hasBegun, { intervalMs: 1 });
      await delay(Math.random() * 700);
    }
    const killedAtMs = await victim.kill();
    // One that had not started has claimed nothing.
    const held = victim.hasStarted ? await ledger.heldBy(victim.workerId) : [];
    await measure(victim, held, killedAtMs);
    await declaredGone(ledger, victim);
    if (held.length > 0) kills++;
    else idle++;
  }
  await load.end();
  await ledger.settled();
  expect(await fleet.stop()).toEqual([0, 0]);
  printTimes(
    `SIGKILL of ${YOUNG_KILLS} workers in their first second, from the kill to the start elsewhere`,
    times,
  );
  expect(await violations(ledger, fleet)).toEqual([]);
  expect(Math.max(...longest)).toBeLessThanOrEqual(5_000);
});

const REPLACED_KILLS = size(6, 20);

test(`SIGKILL of workers whose session is being replaced, ${REPLACED_KILLS} times: their jobs begin elsewhere within 5 s`, {
  timeout: REPLACED_KILLS * 40_000,
}, async () => {
  const { ledger, fleet } = stage;
  await fleet.startMany(2);
  await startRespiteIsOver(ledger);
  const load = new Load(ledger, { maxWorkMs: 500 });
  const { times, longest, measure } = measureRecoveries(ledger, fleet);
  for (let kills = 0; kills < REPLACED_KILLS; ) {
    const victim = await fleet.start({ driver: kills % 2 === 0 ? 'postgres.js' : 'node-postgres' });
    const pid = await ledger.value('select session from queue_workers where id = $1', [victim.workerId]);
    await until(() => victim.entries().some(({ event }) => event === 'begun'));
    await ledger.rows('select pg_terminate_backend($1, 5000)', [pid]);
    // It connects anew after about a tenth of a second.
    await delay(Math.random() * 200);
    const killedAtMs = await victim.kill();
    const held = await ledger.heldBy(victim.workerId);
    await measure(victim, held, killedAtMs);
    await declaredGone(ledger, victim);
    if (held.length > 0) kills++;
  }
  await load.end();
  await ledger.settled();
  expect(await fleet.stop()).toEqual([0, 0]);
  printTimes(
    `SIGKILL of ${REPLACED_KILLS} workers whose session is being replaced, from the kill to the start elsewhere`,
    times,
  );
  expect(await violations(ledger, fleet)).toEqual([]);
  expect(Math.max(...longest)).toBeLessThanOrEqual(5_000);
});
