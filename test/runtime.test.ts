import { afterEach, describe, expect, test, vi } from 'vitest';
import { nextTurn, onNextTurn, setLooseTimeout } from '../src/runtime.ts';

afterEach(() => {
  vi.unstubAllGlobals();
});

describe.each([
  ['Node.js', []],
  ['a browser', ['setImmediate']],
  ['an edge runtime', ['setImmediate', 'MessageChannel']],
])('the next turn of the event loop in %s', (_, missing) => {
  test('comes after every promise of this turn', async () => {
    for (const name of missing) vi.stubGlobal(name, undefined);
    const order: string[] = [];
    onNextTurn(() => order.push('next'));
    const turn = nextTurn();
    await Promise.resolve();
    await Promise.resolve();
    order.push('this');
    await turn;
    expect(order).toEqual(['this', 'next']);
  });
});

test('a timer keeps no process from ending, and is set where timers are numbers, too', () => {
  const unref = vi.fn();
  const set = vi.fn().mockReturnValueOnce({ unref }).mockReturnValueOnce(7);
  vi.stubGlobal('setTimeout', set);
  const task = () => undefined;
  setLooseTimeout(task, 5);
  setLooseTimeout(task, 6);
  expect(set.mock.calls).toEqual([
    [task, 5],
    [task, 6],
  ]);
  expect(unref).toHaveBeenCalledOnce();
});
