import os from 'node:os';
import { afterEach, expect, test, vi } from 'vitest';
import { useTestDatabase } from '../../support/test-database.ts';
import { registered } from './registered.ts';

const database = useTestDatabase();

afterEach(() => vi.restoreAllMocks());

/** A machine that was suspended for a minute: its clocks have moved on, but not that of `performance.now()`. */
function suspend() {
  const upS = os.uptime();
  const clockMs = Date.now();
  vi.spyOn(os, 'uptime').mockReturnValue(upS + 60);
  vi.spyOn(Date, 'now').mockReturnValue(clockMs + 60_000);
}

test('a worker whose machine was suspended begins nothing before the next answer, which tells what it has lost', async () => {
  let returns = 0;
  const { liveness } = await registered(database, { onReturn: () => void returns++ });
  await liveness.look();
  expect(liveness.isCutOff).toBe(false);
  suspend();
  expect(liveness.isCutOff).toBe(true);
  await liveness.look();
  expect(liveness.isCutOff).toBe(false);
  expect(returns).toBe(1);
});

test('a clock of the host that was set suspends no worker', async () => {
  const { liveness } = await registered(database);
  await liveness.look();
  const clockMs = Date.now();
  vi.spyOn(Date, 'now').mockReturnValue(clockMs + 3_600_000);
  expect(liveness.isCutOff).toBe(false);
});
