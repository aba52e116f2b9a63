import { describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { blocking, flaky, ordinary, snoozing, transactional } from './fixtures/ledger-jobs.ts';
import type { FleetWorker } from './fleet.ts';
import { declaredGone, overlaps, violations } from './invariants.ts';
import { print, printTimes, recoveryTimes, seconds } from './recovery.ts';
import { monotonicMs, type RunEvent } from './run-log.ts';
import { size } from './size.ts';
import { useStage } from './stage.ts';

const stage = useStage();

/** The shortest that a worker allows, or the default: a minute. */
const FROZEN_MS = size(15_000, 60_000);
/** Without a session, the blocked worker is declared gone after this. The shortest, or the default. */
const SILENT_MS = size(15_000, 30_000);
const BLOCKED_MS = size(20_000, 40_000);

/** The jobs that a process has said this of. */
function jobsOf(worker: FleetWorker, event: RunEvent, fence: number): number[] {
  return worker
    .entries()
    .flatMap((entry) => (entry.event === event && entry.fence === fence ? [entry.job ?? 0] : []));
}

describe('SIGSTOP for longer than the detection time, then SIGCONT', () => {
  test('the sleeper comes back fenced and harmless, and works on', { timeout: 240_000 }, async () => {
    const { ledger, fleet } = stage;
    const worker = { silentMs: SILENT_MS, frozenMs: FROZEN_MS };
    const sleeper = await fleet.start({ worker });
    const gate = 'sleeper';
    const jobs = [transactional, ordinary, flaky, snoozing, transactional, ordinary, flaky, snoozing];
    const ids = await ledger.enqueue(jobs.map((job) => ({ job, work: { workMs: 0, gate } })));
    await until(() => jobsOf(sleeper, 'begun', 1).length === ids.length);
    const other = await fleet.start({ worker });

    sleeper.freeze();
    const frozenAtMs = monotonicMs();
    const times = await recoveryTimes(ledger, fleet, sleeper, ids, frozenAtMs);
    printTimes(`SIGSTOP with frozenMs ${FROZEN_MS}, from the stop to the start elsewhere`, times);

    // All handlers of the sleeper end the moment it wakes, while the other worker runs the same jobs.
    fleet.openGate(gate, 1);
    sleeper.continue();
    await until(() => jobsOf(sleeper, 'ended', 1).length === ids.length);
    await until(() => jobsOf(sleeper, 'lost', 1).length === ids.length);
    expect(jobsOf(sleeper, 'settled', 1)).toEqual([]);
    expect(jobsOf(sleeper, 'rescheduled', 1)).toEqual([]);
    expect(await ledger.heldBy(other.workerId)).toHaveLength(ids.length);

    fleet.openGate(gate, 2);
    await ledger.settled();
    // It works on: alone, so that nobody else takes what is enqueued now.
    expect(await other.stop()).toBe(0);
    await ledger.enqueue([{ job: transactional, work: { workMs: 0 } }]);
    await ledger.settled();
    expect(await fleet.stop()).toEqual([0]);
    expect(await violations(ledger, fleet)).toEqual([]);
    const begun = fleet.entries().filter(({ event, job }) => event === 'begun' && ids.includes(job ?? 0));
    expect(begun.map(({ process }) => process).sort()).toEqual([
      ...ids.map(() => sleeper.name),
      ...ids.map(() => other.name),
    ]);
  });
});

describe('a blocked event loop', () => {
  test('is no death while the session lives: nothing runs twice', { timeout: 180_000 }, async () => {
    const { ledger, fleet } = stage;
    const gate = 'blocked';
    const blocker = await fleet.start({ worker: { silentMs: SILENT_MS } });
    const jobs = [transactional, ordinary, ordinary, blocking];
    const ids = await ledger.enqueue(jobs.map((job) => ({ job, work: { workMs: BLOCKED_MS, gate } })));
    await until(() => jobsOf(blocker, 'begun', 1).length === ids.length);
    await until(() => blocker.entries().some(({ event }) => event === 'listening'));
    await fleet.startMany(2, { worker: { silentMs: SILENT_MS } });

    const blockedAtMs = monotonicMs();
    fleet.openGate(gate, 1);
    // The other three end, too, but nothing of it is written before the loop is free again.
    await until(() => jobsOf(blocker, 'ended', 1).length === ids.length, { timeoutMs: 60_000 });
    print(
      `an event loop blocked for ${seconds(monotonicMs() - blockedAtMs)}, beside two peers with silentMs ${SILENT_MS}`,
    );
    await ledger.settled();
    expect(await fleet.stop()).toEqual([0, 0, 0]);
    expect(await violations(ledger, fleet)).toEqual([]);
    expect(overlaps(fleet)).toEqual([]);
    expect(declaredGone(fleet)).toEqual([]);
    expect(fleet.entries().filter(({ event }) => event === 'begun')).toHaveLength(ids.length);
    expect(fleet.entries().filter(({ event }) => event === 'lost')).toEqual([]);
  });

  test('without a session is a death after silentMs: its jobs run elsewhere, and what it ends afterwards counts for nothing', {
    timeout: 240_000,
  }, async () => {
    const { ledger, fleet } = stage;
    const worker = { silentMs: SILENT_MS, listen: false };
    const blocker = await fleet.start({ worker });
    const jobs = [
      { job: blocking, gate: 'block' },
      ...[transactional, ordinary, flaky, snoozing].map((job) => ({ job, gate: 'afterwards' })),
    ];
    const ids = await ledger.enqueue(
      jobs.map(({ job, gate }) => ({ job, work: { workMs: BLOCKED_MS, gate } })),
    );
    await until(() => jobsOf(blocker, 'begun', 1).length === ids.length);
    const other = await fleet.start({ worker });

    const blockedAtMs = monotonicMs();
    fleet.openGate('block', 1);
    const times = await recoveryTimes(ledger, fleet, blocker, ids, blockedAtMs);
    printTimes(
      `an event loop blocked without a session, silentMs ${SILENT_MS}: to the start elsewhere`,
      times,
    );
    expect(Math.min(...times)).toBeGreaterThan(SILENT_MS / 2);
    // The others end once the loop is free again, while the other worker runs the same jobs.
    fleet.openGate('afterwards', 1);
    await until(() => jobsOf(blocker, 'ended', 1).length === ids.length, { timeoutMs: 60_000 });
    await until(() => jobsOf(blocker, 'lost', 1).length === ids.length);
    expect(jobsOf(blocker, 'settled', 1)).toEqual([]);
    expect(jobsOf(blocker, 'rescheduled', 1)).toEqual([]);
    expect(await ledger.heldBy(other.workerId)).toHaveLength(ids.length);

    for (const gate of ['block', 'afterwards']) fleet.openGate(gate, 2);
    await ledger.settled(120_000);
    expect(await fleet.stop()).toEqual([0, 0]);
    expect(await violations(ledger, fleet)).toEqual([]);
  });
});
