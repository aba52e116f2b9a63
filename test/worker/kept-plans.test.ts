import { expect, test, vi } from 'vitest';
import { createQueueTables } from '../../src/core/schema/create-queue-tables.ts';
import type { TableSize } from '../../src/core/sql/table-size.ts';
import { KeptPlans, type KeptPlansOptions } from '../../src/core/worker/statements/kept-plans.ts';

let made = 0;

/** Of other tables each time: what one is found to be holds for the process. */
function keptPlans({
  prepares = true,
  tables = createQueueTables({ prefix: `kept_${++made}_` }),
}: Partial<Pick<KeptPlansOptions, 'tables'> & { prepares: boolean }> = {}) {
  return new KeptPlans({ runner: { prepares }, tables });
}

/** Sends a statement while the table is so; answers which forms of it were sent. */
async function sentTo(table: TableSize | 'neither', plans: KeptPlans): Promise<string[]> {
  const sent: string[] = [];
  const answer = await plans.send(
    async (ifTableIs) => {
      sent.push(ifTableIs);
      return ifTableIs === table ? 'kept' : undefined;
    },
    async () => {
      sent.push('anew');
      return 'anew';
    },
  );
  expect(answer).toBe(sent.at(-1) === 'anew' ? 'anew' : 'kept');
  return sent;
}

test('one form is sent as long as the size of the table is the same', async () => {
  const plans = keptPlans();
  expect(await sentTo('small', plans)).toEqual(['small']);
  expect(await sentTo('small', plans)).toEqual(['small']);
  expect(await sentTo('grown', plans)).toEqual(['small', 'grown']);
  expect(await sentTo('grown', plans)).toEqual(['grown']);
});

test('where a table has shrunk, the form for grown ones is never sent again: its plan may be for reading all', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    const plans = keptPlans();
    expect(await sentTo('grown', plans)).toEqual(['small', 'grown']);
    vi.advanceTimersByTime(60_000);
    expect(await sentTo('small', plans)).toEqual(['grown', 'small']);
    expect(await sentTo('small', plans)).toEqual(['small']);
    expect(await sentTo('grown', plans)).toEqual(['small', 'anew']);
    vi.advanceTimersByTime(9_999);
    expect(await sentTo('grown', plans)).toEqual(['anew']);
    vi.advanceTimersByTime(2);
    expect(await sentTo('grown', plans)).toEqual(['small', 'anew']);
    vi.advanceTimersByTime(10_001);
    expect(await sentTo('small', plans)).toEqual(['small']);
  } finally {
    vi.useRealTimers();
  }
});

test('nor does another queue, whose statements run by the same plans', async () => {
  const tables = createQueueTables({ prefix: 'shared_' });
  const [one, other] = [keptPlans({ tables }), keptPlans({ tables })];
  expect(await sentTo('grown', one)).toEqual(['small', 'grown']);
  expect(await sentTo('grown', other)).toEqual(['small', 'grown']);
  expect(await sentTo('small', one)).toEqual(['grown', 'anew']);
  // It has grown again before the other one was asked for anything.
  expect(await sentTo('grown', other)).toEqual(['anew']);
});

test('a table that is neither, such as a partitioned one, is planned for anew', async () => {
  const plans = keptPlans();
  expect(await sentTo('neither', plans)).toEqual(['small', 'grown', 'anew']);
  expect(await sentTo('neither', plans)).toEqual(['anew']);
});

test('where another table of the statement is too large it is planned anew for a while, and then tried again', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    vi.advanceTimersByTime(60_000);
    const plans = keptPlans();
    expect(plans.size).toBe('small');
    plans.noteOther('small');
    expect(plans.size).toBe('grown');
    plans.noteOther('grown', false);
    expect(plans.size).toBeUndefined();
    vi.advanceTimersByTime(10_001);
    expect(await sentTo('grown', plans)).toEqual(['small', 'grown']);
  } finally {
    vi.useRealTimers();
  }
});

test('what is not prepared is planned anew anyway', async () => {
  expect(await sentTo('small', keptPlans({ prepares: false }))).toEqual(['anew']);
});
