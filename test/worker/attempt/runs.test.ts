import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Attempt } from '../../../src/core/worker/run/attempt.ts';
import { SerialRuns } from '../../../src/features/limits/worker/serial-runs.ts';

/** All that runs ask of an attempt. */
function attemptOf(group: number): Attempt {
  return { job: { group: `g${group}` } } as Attempt;
}

const step = fc.record({
  action: fc.constantFrom('add', 'next', 'end', 'cut', 'drop', 'takeAll'),
  group: fc.integer({ min: 0, max: 3 }),
});

test('counts those that stand behind another, whatever becomes of them', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const runs = new SerialRuns('end');
      for (const { action, group } of steps) {
        const attempt = attemptOf(group);
        if (action === 'add') runs.add([attempt, attemptOf(group), attemptOf((group + 1) % 4)]);
        else if (action === 'drop') runs.drop(new Set(runs.standing.filter((_, at) => at % 2 === group % 2)));
        else if (action === 'takeAll') runs.takeAll();
        else runs[action](attempt);
        expect(runs.size).toBe(runs.standing.length);
      }
    }),
  );
});
