import { expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { ordinary, transactional } from './fixtures/ledger-jobs.ts';
import { declaredGone, overlaps, violations } from './invariants.ts';
import { Load } from './load.ts';
import { printTimes, recoveryTimes, startRespiteIsOver } from './recovery.ts';
import { monotonicMs } from './run-log.ts';
import { useStage } from './stage.ts';

const stage = useStage();
const TEN_MINUTES_MS = 600_000;
const DELAY_MS = 2_000;

test('hosts whose clocks are 10 minutes off, either way, have no effect', { timeout: 180_000 }, async () => {
  const { ledger, fleet } = stage;
  const [early, late, victim, right] = await Promise.all([
    fleet.start({ clockShiftMs: -TEN_MINUTES_MS }),
    fleet.start({ clockShiftMs: TEN_MINUTES_MS }),
    fleet.start({ clockShiftMs: TEN_MINUTES_MS }),
    fleet.start(),
  ]);
  // Their clocks are as far off as they were told to be: with right ones, all that follows would say nothing.
  for (const [worker, shiftMs] of [
    [early, -TEN_MINUTES_MS],
    [late, TEN_MINUTES_MS],
    [victim, TEN_MINUTES_MS],
    [right, 0],
  ] as const)
    expect(Math.abs(worker.clockAheadMs() - shiftMs), worker.name).toBeLessThan(60_000);
  await startRespiteIsOver(ledger);
  const load = new Load(ledger);
  const enqueuedAtMs = monotonicMs();
  const delayed = await ledger.enqueue(
    Array.from({ length: 40 }, () => ({ job: ordinary, work: { workMs: 0 }, delayMs: DELAY_MS })),
  );
  const begun = (id: number) => fleet.entries().some(({ event, job }) => event === 'begun' && job === id);
  await until(() => delayed.every(begun), { timeoutMs: 60_000 });
  await ledger.enqueue(Array.from({ length: 40 }, () => ({ job: transactional, work: { workMs: 1_000 } })));
  await until(async () => (await ledger.heldBy(victim.workerId)).length >= 3);
  const killedAtMs = await victim.kill();
  const held = await ledger.heldBy(victim.workerId);
  const times = await recoveryTimes(ledger, fleet, victim, held, killedAtMs);
  await load.end();
  await ledger.settled();
  expect(await fleet.stop()).toEqual([0, 0, 0]);
  printTimes('clocks 10 minutes off, from the kill to the start elsewhere', times);
  expect(await violations(ledger, fleet)).toEqual([]);
  expect(overlaps(fleet)).toEqual([]);
  expect(Math.max(...times)).toBeLessThanOrEqual(5_000);
  const waitedMs = fleet
    .entries()
    .flatMap(({ event, job, atMs }) =>
      event === 'begun' && delayed.includes(job ?? 0) ? [atMs - enqueuedAtMs] : [],
    );
  expect(waitedMs).toHaveLength(delayed.length);
  expect(Math.min(...waitedMs)).toBeGreaterThanOrEqual(DELAY_MS);
  // On a machine that is busy, but not ten minutes.
  expect(Math.max(...waitedMs)).toBeLessThan(DELAY_MS + 20_000);
  // And they were shared by hosts with every clock.
  const processes = new Set(fleet.entries().map(({ process }) => process));
  expect(processes.size).toBe(4);
});

const HOUR_MS = 3_600_000;

test('clocks that jump by up to an hour, either way, while workers run have no effect', {
  timeout: 180_000,
}, async () => {
  const { ledger, fleet } = stage;
  const workers = await fleet.startMany(3, { clockJumpsMs: HOUR_MS });
  await startRespiteIsOver(ledger);
  const load = new Load(ledger);
  const enqueuedAtMs = monotonicMs();
  const delayed = await ledger.enqueue(
    Array.from({ length: 40 }, () => ({ job: ordinary, work: { workMs: 0 }, delayMs: DELAY_MS })),
  );
  const begunAtMs = (id: number) =>
    fleet.entries().find(({ event, job }) => event === 'begun' && job === id)?.atMs;
  await until(() => delayed.every(begunAtMs), { timeoutMs: 60_000 });
  await ledger.enqueue(Array.from({ length: 20 }, () => ({ job: transactional, work: { workMs: 1_000 } })));
  const victim = await until(async () => {
    for (const worker of workers) if ((await ledger.heldBy(worker.workerId)).length >= 3) return worker;
    return undefined;
  });
  if (victim === undefined) throw new Error('no worker holds three jobs');
  const killedAtMs = await victim.kill();
  const held = await ledger.heldBy(victim.workerId);
  const times = await recoveryTimes(ledger, fleet, victim, held, killedAtMs);
  await load.end();
  await ledger.settled();
  expect(await fleet.stop()).toEqual([0, 0]);
  printTimes('clocks that jump by up to an hour, from the kill to the start elsewhere', times);
  expect(await violations(ledger, fleet)).toEqual([]);
  expect(overlaps(fleet)).toEqual([]);
  expect(new Set(declaredGone(fleet).map((line) => line.split(' ')[2]))).toEqual(new Set([victim.name]));
  expect(Math.max(...times)).toBeLessThanOrEqual(5_000);
  const waitedMs = delayed.map((id) => (begunAtMs(id) ?? 0) - enqueuedAtMs);
  expect(Math.min(...waitedMs)).toBeGreaterThanOrEqual(DELAY_MS);
  expect(Math.max(...waitedMs)).toBeLessThan(DELAY_MS + 20_000);
  // Their clocks have jumped: with right ones, all of this would say nothing.
  for (const { name, log } of workers) {
    const aheadMs = log
      .entries()
      .flatMap(({ atMs, clockMs }) => (clockMs === undefined ? [] : [clockMs - atMs]));
    expect(Math.max(...aheadMs) - Math.min(...aheadMs), name).toBeGreaterThan(HOUR_MS / 4);
  }
});
