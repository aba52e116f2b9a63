import { expect } from 'vitest';
import { sqlStateOf } from '../../src/core/sql/executor.ts';

/** That Postgres refuses this for want of a right. */
export async function expectDenied(call: PromiseLike<unknown>): Promise<void> {
  const outcome = await Promise.resolve(call).then(
    () => 'it was allowed',
    (error: unknown) => sqlStateOf(error) ?? error,
  );
  expect(outcome).toBe('42501');
}
