import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import {
  createQueue,
  defineJob,
  drain,
  fixedBackoff,
  handle,
  limitsIn,
  NonRetryableError,
  unvalidated,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import type { Behaviour, Site } from './behaviour.ts';

const RATE = { limit: 3, perMs: 300 };
const queue = createQueue({
  limits: limitsIn(control, {
    'limited-kinds': { concurrency: 4, kinds: { narrow: { concurrency: 2 } } },
    'limited-groups': { groups: { concurrency: 2 } },
    shared: { groups: {} },
    rated: { rate: RATE },
    ordered: { groups: { serial: 'success' } },
  }),
});

interface Work {
  readonly group: string;
  readonly n: number;
}

const payload = unvalidated<Work>();
const narrow = defineJob('narrow', { payload, queue: 'limited-kinds' });
const wide = defineJob('wide', { payload, queue: 'limited-kinds' });
const group = ({ group }: Work) => group;
const pair = defineJob('pair', { payload, queue: 'limited-groups', group });
const share = defineJob('share', { payload, queue: 'shared', group });
const rated = defineJob('rated', { payload, queue: 'rated' });
const ordered = defineJob('ordered', { payload, queue: 'ordered', group, backoff: fixedBackoff(50) });

const jobs = (group: string, count: number) =>
  Array.from({ length: count }, (_, n) => ({ payload: { group, n } }));

/** Two that drain a queue together. */
async function drainTwice(
  { db }: Site,
  name: string,
  handlers: Parameters<typeof drain>[1]['handlers'],
  concurrency = 10,
): Promise<number> {
  const options = { queue, handlers, queues: { [name]: { concurrency } }, deadlineMs: 30_000 };
  const drained = await Promise.all([drain(db, options), drain(db, options)]);
  return drained.reduce((sum, { completed }) => sum + completed, 0);
}

/** For a worker to come by its share of the slots. */
const PATIENCE_MS = 5_000;

/** How many run at once, by a name; and the most that ever did. */
class Running {
  readonly #now = new Map<string, number>();
  readonly most: Record<string, number> = {};

  /** Stays until as many as are allowed have run at once, however slow the machine is, and a moment longer. */
  async during(name: string, allowed: number): Promise<void> {
    const now = (this.#now.get(name) ?? 0) + 1;
    this.#now.set(name, now);
    this.most[name] = Math.max(now, this.most[name] ?? 0);
    for (
      const startMs = Date.now();
      (this.most[name] ?? 0) < allowed && Date.now() - startMs < PATIENCE_MS;
    ) {
      await delay(20);
    }
    await delay(20);
    this.#now.set(name, (this.#now.get(name) ?? 0) - 1);
  }
}

export const limiting: readonly Behaviour[] = [
  {
    name: 'no more of a queue and of a kind run than its limits allow, in two workers together, and as many do',
    async run(site) {
      await queue.enqueueMany(site.db, narrow, jobs('narrow', 8));
      await queue.enqueueMany(site.db, wide, jobs('wide', 8));
      const running = new Running();
      const run = async ({ payload }: { readonly payload: Work }) => {
        const allowed = payload.group === 'narrow' ? 2 : 0;
        await Promise.all([running.during(payload.group, allowed), running.during('all', 4)]);
      };
      assert.equal(await drainTwice(site, 'limited-kinds', [handle(narrow, run), handle(wide, run)]), 16);
      assert.equal(running.most.narrow, 2);
      assert.equal(running.most.all, 4);
    },
  },
  {
    name: 'no more of a group run than its limit allows, in two workers together; one has a limit of its own',
    needs: ['groups'],
    async run(site) {
      const { db } = site;
      const set = await queue.limits.set(db, { queue: 'limited-groups', group: 'c' }, { concurrency: 1 });
      assert.deepEqual([set.declared, set.override], [{ concurrency: 2 }, { concurrency: 1 }]);
      for (const name of ['a', 'b', 'c']) await queue.enqueueMany(db, pair, jobs(name, 6));
      const running = new Running();
      const run = async ({ payload }: { readonly payload: Work }) =>
        await running.during(payload.group, payload.group === 'c' ? 1 : 2);
      assert.equal(await drainTwice(site, 'limited-groups', [handle(pair, run)]), 18);
      assert.deepEqual(running.most, { a: 2, b: 2, c: 1 });
    },
  },
  {
    name: 'groups take turns: one with many jobs keeps another waiting for one round at most',
    needs: ['groups'],
    async run(site) {
      await queue.enqueueMany(site.db, share, jobs('large', 300));
      await queue.enqueue(site.db, share, { group: 'small', n: 0 });
      const begun: string[] = [];
      // Of jobs that take no time, many are claimed ahead.
      const run = async ({ payload }: { readonly payload: Work }) => {
        begun.push(payload.group);
        if (!begun.includes('small')) await delay(20);
      };
      assert.equal(await drainTwice(site, 'shared', [handle(share, run)], 2), 301);
      // Before the claim that takes it: what both have slots for, and as much again.
      assert.ok(begun.indexOf('small') <= 8, `${begun.indexOf('small')} jobs of the other came first`);
    },
  },
  {
    name: 'no window of a rate sees more starts, in two workers together',
    async run(site) {
      await queue.enqueueMany(site.db, rated, jobs('-', 7));
      const starts: number[] = [];
      const run = () => void starts.push(performance.now());
      assert.equal(await drainTwice(site, 'rated', [handle(rated, run)]), 7);
      starts.sort((a, b) => a - b);
      for (const [index, start] of starts.slice(RATE.limit).entries()) {
        const before = starts[index] ?? Number.NaN;
        assert.ok(start - before >= RATE.perMs, `the starts were at ${starts}`);
      }
    },
  },
  {
    name: 'jobs of a group run in order, also after a retry; a discarded one stops them until it is redriven',
    needs: ['groups'],
    async run(site) {
      const { db } = site;
      const ids = await queue.enqueueMany(db, ordered, jobs('a', 5));
      const order: number[] = [];
      let broken = true;
      const handler = handle(ordered, ({ payload, job }) => {
        order.push(payload.n);
        if (payload.n === 1 && job.attempt === 1) throw new Error('once');
        if (payload.n === 3 && broken) throw new NonRetryableError('stop');
      });
      // A retry waits for its time, which a drain does not.
      while (order.length < 5) await drainTwice(site, 'ordered', [handler]);
      assert.deepEqual(order, [0, 1, 1, 2, 3]);
      const { groups } = await queue.limits.groups(db, { queue: 'ordered' });
      assert.deepEqual(
        groups.map(({ group, blockedBy }) => [group, blockedBy]),
        [['a', ids[3]?.id]],
      );
      broken = false;
      assert.equal((await queue.redrive(db, ids[3]?.id ?? 0)).redriven, 1);
      while (order.length < 7) await drainTwice(site, 'ordered', [handler]);
      assert.deepEqual(order, [0, 1, 1, 2, 3, 3, 4]);
    },
  },
];
