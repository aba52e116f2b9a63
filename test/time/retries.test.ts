import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { Retries } from '../../src/core/time/retries.ts';

const HOUR_MS = 3_600_000;

test('all pauses end when a try is worth its while, and the next ones last again', async () => {
  const retries = new Retries();
  const { signal } = new AbortController();
  const pauses = [retries.sleep(HOUR_MS, signal), retries.sleep(HOUR_MS, signal)];
  retries.now();
  expect(await Promise.all(pauses)).toEqual([true, true]);
  expect(await retries.sleep(1, signal)).toBe(false);
});

test('a pause ends with its signal, also one that was aborted before, and leaves nothing on it', async () => {
  const retries = new Retries();
  const stopping = new AbortController();
  expect(await retries.sleep(1, stopping.signal)).toBe(false);
  const pausing = retries.sleep(HOUR_MS, stopping.signal);
  stopping.abort();
  expect(await pausing).toBe(false);
  expect(await retries.sleep(HOUR_MS, stopping.signal)).toBe(false);
  expect(getEventListeners(stopping.signal, 'abort')).toEqual([]);
});
