import { describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { blocking, flaky, ordinary, snoozing, transactional } from './fixtures/ledger-jobs.ts';
import type { FleetWorker } from './fleet.ts';
import { declaredGone, overlaps, violations } from './invariants.ts';
import { print, printTimes, recoveryTimes, seconds } from './recovery.ts';
import { monotonicMs, type RunEvent } from './run-log.ts';
import { useStage } from './stage.ts';

const stage = useStage();

/** The shortest that a worker allows: the default takes a minute. */
const FROZEN_MS = 15_000;
/** Without sessions, the blocked worker would be declared gone after this. */
const SILENT_MS = 15_000;
const BLOCKED_MS = 20_000;

/** The jobs that a process has said this of. */
function jobsOf(worker: FleetWorker, event: RunEvent, fence: number): number[] {
  return worker
    .entries()
    .flatMap((entry) => (entry.event === event && entry.fence === fence ? [entry.job ?? 0] : []));
}

describe('SIGSTOP for longer than the detection time, then SIGCONT', () => {
  test('the sleeper comes back fenced and harmless, and works on', { timeout: 180_000 }, async () => {
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
  test('is no death while the session lives: nothing runs twice', { timeout: 120_000 }, async () => {
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
});
