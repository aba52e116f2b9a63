import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import type { Runner } from '../../../src/core/sql/executor.ts';
import { Condition } from '../../../src/core/time/condition.ts';
import { WorkerEmitter } from '../../../src/core/worker/base/events.ts';
import { type IdleQueue, Watch } from '../../../src/core/worker/claim/watch.ts';
import { tables } from '../../queries/support/jobs.ts';
import { onThisServer } from '../../support/citus.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase();

/** A watch that runs, and how many rounds it has begun. */
function watching(intervalMs: number, runner: Runner = database.db) {
  const seen = { rounds: 0 };
  const watch = new Watch({
    runner,
    tables: onThisServer(tables),
    kinds: ['kind'],
    intervalMs: () => {
      seen.rounds++;
      return intervalMs;
    },
    events: new WorkerEmitter(),
  });
  const over = new AbortController();
  const running = watch.run(over.signal);
  onTestFinished(async () => {
    over.abort();
    await running;
  });
  return { watch, seen };
}

function emptyQueue(queue: string): IdleQueue & { looks: number } {
  return {
    queue,
    looks: 0,
    lowestFloorMs: Number.NEGATIVE_INFINITY,
    groups: undefined,
    wake: () => {},
    noteNothing() {
      this.looks++;
    },
  };
}

test('the only queue is looked at all the same if it was awake in vain when a look was due', async () => {
  const { watch, seen } = watching(20);
  const idle = emptyQueue('a');
  watch.add(idle, true);
  await until(() => idle.looks > 0);
  watch.remove(idle);
  const { rounds } = seen;
  await until(() => seen.rounds > rounds);
  const { looks } = idle;
  watch.add(idle, false);
  await until(() => idle.looks > looks + 3);
});

test('one of several that was awake in vain when they were looked at is not left out', async () => {
  // Nothing but what is missed is looked at.
  const { watch } = watching(3_600_000);
  const [idle, awake] = [emptyQueue('a'), emptyQueue('b')];
  watch.add(idle, true);
  watch.add(awake, true);
  await until(() => idle.looks > 0 && awake.looks > 0);
  watch.remove(awake);
  const { looks } = idle;
  watch.look();
  await until(() => idle.looks > looks);
  const before = awake.looks;
  watch.add(awake, false);
  await until(() => awake.looks > before);
});

test('a queue that is awake in vain again and again is looked at no more often', async () => {
  const { watch, seen } = watching(3_600_000);
  const idle = emptyQueue('a');
  watch.add(idle, true);
  await until(() => idle.looks > 0);
  const { rounds } = seen;
  for (let n = 0; n < 100; n++) {
    watch.remove(idle);
    watch.add(idle, false);
    await new Promise(setImmediate);
  }
  expect(seen.rounds).toBe(rounds);
});

test('a look that began before the end of the last job says nothing of what that has left', async () => {
  let sent = 0;
  const heardBefore: number[] = [];
  const over = new Condition();
  const idle = emptyQueue('a');
  const { watch } = watching(3_600_000, {
    execute: async (query) => {
      sent++;
      heardBefore.push(idle.looks);
      const answer = await database.db.execute(query);
      if (sent === 1) await over.wait();
      return answer;
    },
  });
  watch.add(idle, true);
  await until(() => sent === 1);
  // As at the end of a job.
  watch.add(idle, true);
  over.signal();
  await until(() => idle.looks > 0);
  expect(heardBefore).toEqual([0, 0]);
});

test('one look that had to wait does not make the next ones rare', async () => {
  const sentMs: number[] = [];
  const { watch } = watching(20, {
    execute: async (query) => {
      sentMs.push(performance.now());
      const answer = await database.db.execute(query);
      // The second is late, as on a machine that is busy for a moment.
      if (sentMs.length === 2) await delay(2_000);
      return answer;
    },
  });
  watch.add(emptyQueue('a'), true);
  await until(() => sentMs.length >= 5);
  // By the time of the late look alone the fourth would come six to ten seconds after the third.
  expect((sentMs[3] ?? 0) - (sentMs[2] ?? 0)).toBeLessThan(4_000);
});
