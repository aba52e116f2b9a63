import { expect, test } from 'vitest';
import { judgeServer } from '../../../src/core/queue/stats/judge-server.ts';

const fine = {
  snapshot: undefined,
  slot: undefined,
  deadRows: 0,
  liveRows: 10,
  vacuumedMsAgo: 1_000,
  transactionAge: 5_000,
};

const badOf = (given: Partial<Parameters<typeof judgeServer>[0] & object>) =>
  judgeServer({ ...fine, ...given })
    .filter(({ severity }) => severity !== 'ok')
    .map(({ code, severity }) => [code, severity]);

test('a server that keeps up has nothing against it', () => {
  expect(badOf({})).toEqual([]);
  expect(badOf({ deadRows: 99_999 })).toEqual([]);
  expect(badOf({ deadRows: 200_000, liveRows: 100_000 })).toEqual([]);
});

test('what keeps dead rows is named, with what ends it', () => {
  const snapshot = { holder: 'the process 7 (psql)', remedy: 'select pg_terminate_backend(7)', ms: 300_000 };
  expect(badOf({ snapshot })).toEqual([['oldest-snapshot', 'warning']]);
  expect(badOf({ snapshot: { ...snapshot, ms: 3_600_000 } })).toEqual([['oldest-snapshot', 'error']]);
  const [found] = judgeServer({ ...fine, snapshot });
  expect(found?.message).toContain('the process 7 (psql) has held a snapshot for 5 minutes');
  expect(found?.fix).toContain('select pg_terminate_backend(7)');
  expect(badOf({ slot: { name: 'replica', transactions: 2_000_000 } })).toEqual([['slot-behind', 'warning']]);
});

test('dead rows and old transactions are judged by their number', () => {
  expect(badOf({ deadRows: 200_000 })).toEqual([['dead-rows', 'warning']]);
  expect(badOf({ transactionAge: 600_000_000 })).toEqual([['transaction-age', 'warning']]);
  expect(badOf({ transactionAge: 1_600_000_000 })).toEqual([['transaction-age', 'error']]);
});

test('before the first autovacuum there is no time of the last one', () => {
  const messageOf = (vacuumedMsAgo: number | undefined) =>
    judgeServer({ ...fine, vacuumedMsAgo }).find(({ code }) => code === 'dead-rows')?.message;
  expect(messageOf(undefined)).toBe('Dead rows are few, and autovacuum has not run yet');
  expect(messageOf(1_000)).toMatch(/^Autovacuum keeps up; it last finished .* ago$/);
});

test('what could not be read is unknown, never ok', () => {
  expect(new Set(judgeServer(undefined).map(({ severity, value }) => `${severity} ${value}`))).toEqual(
    new Set(['unknown undefined']),
  );
});
