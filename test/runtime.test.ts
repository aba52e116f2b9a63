import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { keepContext, nextTurn, onNextTurn, setLooseTimeout } from '../src/core/runtime.ts';

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

describe('a kept context', () => {
  test('is that of its making in each task, whatever a task has changed', async () => {
    const storage = new AsyncLocalStorage<string>();
    const inContext = storage.run('kept', keepContext);
    const seen: unknown[] = [];
    const visit = async () => {
      seen.push(storage.getStore());
      storage.enterWith('changed');
      await nextTurn();
      seen.push(storage.getStore());
    };
    await Promise.all([inContext(visit), inContext(visit)]);
    expect(seen).toEqual(['kept', 'kept', 'changed', 'changed']);
    expect(storage.getStore()).toBeUndefined();
  });

  test('passes on what a task returns and throws', () => {
    const inContext = keepContext();
    expect(inContext(() => 7)).toBe(7);
    expect(() =>
      inContext(() => {
        throw new Error('of the task');
      }),
    ).toThrow('of the task');
  });

  test('is none where the runtime has no AsyncLocalStorage: the task is called', () => {
    vi.spyOn(process, 'getBuiltinModule').mockReturnValue(undefined as never);
    onTestFinished(() => void vi.restoreAllMocks());
    expect(keepContext()(() => 7)).toBe(7);
  });
});
