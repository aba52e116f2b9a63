import { expect, onTestFinished, test } from 'vitest';
import type { Connection } from '../../../src/core/worker/statements/own-connection.ts';
import { Spare } from '../../../src/core/worker/statements/spare.ts';
import { until } from '../../support/until.ts';

/** Connections whose statements are answered when they are told to. */
function openable() {
  const answers: (() => void)[][] = [];
  const open = () => {
    const own: (() => void)[] = [];
    answers.push(own);
    const connection: Connection = {
      runner: { execute: () => new Promise<void>((resolve) => own.push(resolve)) },
      signal: new AbortController().signal,
      abandon: () => undefined,
    };
    return { opened: Promise.resolve(connection), close: () => undefined };
  };
  return { open, answers };
}

test('a connection that answers again serves again: no other is opened', async () => {
  const { open, answers } = openable();
  const spare = new Spare(open);
  onTestFinished(() => spare.end());
  spare.want();
  const first = (await until(() => spare.connection)) ?? expect.fail();
  void first.runner.execute('select 1' as never);
  const second =
    (await until(() => (spare.connection === first ? undefined : spare.connection))) ?? expect.fail();
  answers[0]?.[0]?.();
  await until(() => first.unansweredMs === 0);
  void second.runner.execute('select 1' as never);
  // It looks twice a second whether one is needed.
  await until(() => second.unansweredMs > 1_700);
  expect(spare.connection).toBe(first);
  expect(answers).toHaveLength(2);
});
