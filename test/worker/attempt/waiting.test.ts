import { expect, test } from 'vitest';
import { Beginnings } from '../../../src/core/worker/begin/beginnings.ts';
import type { Gate } from '../../../src/core/worker/begin/gate.ts';
import { gatheredOf } from '../../../src/core/worker/begin/gathered.ts';
import { NO_RUNS } from '../../../src/core/worker/begin/runs.ts';
import { Waiting } from '../../../src/core/worker/begin/waiting.ts';
import type { Attempt } from '../../../src/core/worker/run/attempt.ts';
import { tables } from '../../queries/support/jobs.ts';

/** All that is asked of an attempt that waits. */
function lastAttempt(kind: string, begun: boolean): Attempt {
  const attempt = {
    job: { kind, attempt: 1, maxAttempts: 1, errors: [], begun },
    recording: undefined,
    get mayBegin() {
      return this.recording === undefined || this.recording === 'recorded';
    },
  };
  return attempt as unknown as Attempt;
}

test('what has begun and waits for a slot of its kind stands in the way of what must begin alone', () => {
  const beginnings = new Beginnings({ runner: { prepares: false }, tables } as never);
  const gate = {
    heldUp: new Set(['few']),
    next: (waiting: readonly Attempt[]) => waiting.find(({ job }) => job.kind !== 'few'),
  } as unknown as Gate;
  const batches = gatheredOf({ handlers: new Map() } as never);
  const waiting = new Waiting({ beginnings, batches, runs: NO_RUNS, gate });
  // The first claim begins its job. Of the other kind none has ended here: its first one begins alone.
  const [few, once] = [lastAttempt('few', true), lastAttempt('once', false)];
  waiting.add([few]);
  waiting.add([once]);
  expect(waiting.first).toBeUndefined();
  expect(waiting.blocking).toEqual([few]);
  expect(waiting.take(waiting.blocking)).toEqual([few]);
  expect(waiting.first).toBe(once);
  expect(waiting.blocking).toEqual([]);
  expect(beginnings.isDue(waiting.unhindered, 10)).toBe(true);
});
