import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LeaseShare } from '../../../src/features/limits/queries/find-leases.ts';
import { Lease, type Wish } from '../../../src/features/limits/worker/lease.ts';
import { keepOf } from '../../../src/features/limits/worker/share-out.ts';
import { depth } from '../../support/depth.ts';

const question = { queue: 'q', kind: '', declared: 10 };

/** The table, as `takeLease` changes it: its tests are in `take-lease.test.ts`. */
class Table {
  readonly rows = new Map<number, { has: number; wants: number; era: number }>();
  constructor(public limit: number) {}

  get total(): number {
    return [...this.rows.values()].reduce((sum, { has }) => sum + has, 0);
  }

  take(worker: number, { running, want, wants, era }: Wish): LeaseShare {
    const own = this.rows.get(worker) ?? { has: 0, wants: 0, era: 0 };
    const others = [...this.rows].filter(([id]) => id !== worker).map(([, row]) => row);
    const rest = others.reduce((sum, { has }) => sum + has, 0);
    const sharing = others.filter((row) => row.has > 0 || row.wants > 0).length;
    const lacking = others.filter((row) => row.has < row.wants).map(({ has }) => has);
    const leastLacking = lacking.length === 0 ? undefined : Math.min(...lacking);
    const share = Math.ceil(this.limit / (sharing + 1));
    const most = leastLacking !== undefined && leastLacking < share ? share : Number.POSITIVE_INFINITY;
    const granted = Math.max(running, Math.min(own.has, want), Math.min(want, this.limit - rest, most));
    const has = own.era > era ? own.has : granted;
    if (own.era <= era) this.rows.set(worker, { has, wants, era });
    return {
      limit: this.limit,
      has,
      total: rest + has,
      sharing: sharing + Number(wants > 0 || want > 0),
      leastLacking,
    };
  }

  look(worker: number): LeaseShare {
    const own = this.rows.get(worker) ?? { has: 0, wants: 0, era: 0 };
    const others = [...this.rows].filter(([id]) => id !== worker).map(([, row]) => row);
    const lacking = others.filter((row) => row.has < row.wants).map(({ has }) => has);
    return {
      limit: this.limit,
      has: own.has,
      total: this.total,
      sharing: [...this.rows.values()].filter((row) => row.has > 0 || row.wants > 0).length,
      leastLacking: lacking.length === 0 ? undefined : Math.min(...lacking),
    };
  }
}

/** One worker: a lease, jobs that wait for it, and statements that are under way. */
class Simulated {
  readonly lease = new Lease(question);
  backlog = 0;
  constructor(
    readonly id: number,
    readonly table: Table,
  ) {
    this.lease.noteLook(table.look(id), this.lease.version, 0);
  }

  begin(): void {
    while (this.backlog > 0 && this.lease.mayBegin) {
      this.backlog--;
      this.lease.begin();
    }
  }

  wish(nowMs: number): Wish | undefined {
    const appetite = Math.min(10, this.lease.running + this.backlog);
    const wish = this.lease.wish(nowMs, appetite);
    if (wish !== undefined) this.lease.noteSent(wish, nowMs);
    return wish;
  }
}

test('gets what it has jobs for at once, and gives back what it has not used for 100 ms', () => {
  const table = new Table(10);
  const worker = new Simulated(1, table);
  expect(worker.lease.room).toBe(1);
  expect(worker.wish(0)).toBe(undefined);
  worker.backlog = 3;
  const wish = worker.wish(0);
  expect(wish).toEqual({ running: 0, want: 3, wants: 3, era: 0 });
  expect(worker.lease.mayBegin).toBe(false);
  if (wish) worker.lease.noteAnswer(table.take(1, wish), 1);
  worker.begin();
  expect(worker.lease.running).toBe(3);
  expect(worker.lease.room).toBe(6);
  worker.lease.end(50);
  worker.lease.end(50);
  expect(worker.wish(149)).toBe(undefined);
  // Two have run since.
  expect(worker.wish(150)).toEqual({ running: 1, want: 2, wants: 2, era: 0 });
  worker.lease.noteAnswer(table.take(1, { running: 1, want: 2, wants: 2, era: 0 }), 150);
  expect(worker.wish(250)).toEqual({ running: 1, want: 1, wants: 1, era: 0 });
  // Said to be given back, so no longer used.
  expect(worker.lease.mayBegin).toBe(false);
});

test('what is not used is kept while the first claims since it became free are under way', () => {
  const table = new Table(10);
  const worker = new Simulated(1, table);
  worker.backlog = 1;
  const wish = worker.wish(0);
  if (wish) worker.lease.noteAnswer(table.take(1, wish), 0);
  worker.begin();
  worker.lease.noteClaiming();
  worker.lease.end(0);
  expect(worker.wish(1_000)).toBe(undefined);
  expect(worker.lease.nextMs(1_000, 0)).toBe(Number.POSITIVE_INFINITY);
  // That claim was not for it, but the next one is.
  expect(worker.lease.noteClaimed(1_000)).toBe(true);
  worker.lease.noteClaiming();
  expect(worker.wish(2_000)).toBe(undefined);
  expect(worker.lease.noteClaimed(2_000)).toBe(true);
  expect(worker.lease.nextMs(2_000, 0)).toBe(2_100);
  // Claims for others do not keep it for ever.
  worker.lease.noteClaiming();
  expect(worker.wish(2_099)).toBe(undefined);
  expect(worker.wish(2_100)).toEqual({ running: 0, want: 0, wants: 0, era: 0 });
  expect(worker.lease.noteClaimed(2_101)).toBe(false);
});

test('after a lost answer it uses the least that it may have, and says again what it wants, in a later era', () => {
  const table = new Table(10);
  const worker = new Simulated(1, table);
  worker.backlog = 5;
  const first = worker.wish(0);
  if (first) table.take(1, first);
  worker.lease.noteFailure(10, true);
  expect(worker.lease.mayBegin).toBe(false);
  expect(worker.wish(11)).toBe(undefined);
  expect(worker.wish(200)).toEqual({ running: 0, want: 5, wants: 5, era: 1 });
});

test('an answer from before it was declared gone counts for nothing', () => {
  const table = new Table(10);
  const worker = new Simulated(1, table);
  worker.backlog = 5;
  const first = worker.wish(0);
  worker.lease.noteGone();
  if (first) worker.lease.noteAnswer(table.take(1, first), 1);
  expect(worker.lease.mayBegin).toBe(false);
  expect(worker.wish(2)).toMatchObject({ want: 5, era: 1 });
});

test('one that returns begins nothing until what runs is covered', () => {
  const table = new Table(4);
  const [a, b] = [new Simulated(1, table), new Simulated(2, table)];
  a.backlog = 8;
  const first = a.wish(0);
  if (first) a.lease.noteAnswer(table.take(1, first), 0);
  a.begin();
  // Declared gone; another takes its slots.
  table.rows.delete(1);
  a.lease.noteGone();
  b.backlog = 3;
  const taken = b.wish(0);
  if (taken) b.lease.noteAnswer(table.take(2, taken), 0);
  b.begin();
  a.lease.end(1);
  expect(a.lease.mayBegin).toBe(false);
  const again = a.wish(2);
  expect(again).toMatchObject({ running: 3, era: 1 });
  if (again) a.lease.noteAnswer(table.take(1, again), 2);
  expect(table.total).toBe(6);
  a.lease.end(3);
  a.lease.end(3);
  a.lease.end(3);
  expect(a.lease.mayBegin).toBe(false);
});

test('one that has none looks for a job, also where others lack theirs, and then asks', () => {
  const table = new Table(2);
  table.rows.set(8, { has: 2, wants: 2, era: 0 });
  table.rows.set(9, { has: 0, wants: 5, era: 0 });
  const worker = new Simulated(1, table);
  expect(worker.lease.room).toBe(1);
  worker.backlog = 1;
  const wish = worker.wish(0);
  if (wish) worker.lease.noteAnswer(table.take(1, wish), 0);
  expect(table.rows.get(1)).toEqual({ has: 0, wants: 1, era: 0 });
  expect(worker.lease.room).toBe(0);
});

test('one that had its turn asks before the others have had theirs only if a slot is left to it', () => {
  const table = new Table(1);
  const [worker, other] = [new Simulated(1, table), new Simulated(2, table)];
  worker.backlog = 9;
  other.backlog = 9;
  const ask = ({ id, lease }: Simulated, wish: Wish | undefined, nowMs: number) => {
    if (wish) lease.noteAnswer(table.take(id, wish), nowMs);
    return wish;
  };
  ask(worker, worker.wish(0), 0);
  worker.begin();
  ask(other, other.wish(0), 0);
  expect(other.lease.mayBegin).toBe(false);
  // Its slice is over, and the other has none.
  worker.lease.noteLook(table.look(1), worker.lease.version, 1_000);
  worker.lease.end(1_000);
  expect(ask(worker, worker.wish(1_000), 1_000)).toMatchObject({ want: 0, wants: 8 });
  expect(worker.wish(1_001)).toBe(undefined);
  expect(other.wish(10)).toBe(undefined);
  other.lease.noteSucceeds(10);
  ask(other, other.wish(10), 11);
  expect(other.lease.mayBegin).toBe(true);
  other.begin();
  // It learns of its slot while it asks, and was too early.
  expect(worker.wish(3_000)).toMatchObject({ want: 1 });
  worker.lease.noteSucceeds(3_000);
  worker.lease.noteAnswer(table.look(1), 3_001);
  expect(worker.lease.mayBegin).toBe(false);
  expect(worker.wish(3_001)).toMatchObject({ wants: 8 });
});

test('one that was refused asks again as soon as it learns that the limit was raised, and not when it was lowered', () => {
  const table = new Table(1);
  const [worker, other] = [new Simulated(1, table), new Simulated(2, table)];
  other.backlog = 1;
  worker.backlog = 9;
  const ask = ({ id, lease }: Simulated, wish: Wish | undefined, nowMs: number) => {
    if (wish) lease.noteAnswer(table.take(id, wish), nowMs);
    return wish;
  };
  ask(other, other.wish(0), 0);
  other.begin();
  // It asks less and less often.
  for (let nowMs = 0; nowMs < 5_000; nowMs += 1_000) ask(worker, worker.wish(nowMs), nowMs);
  worker.lease.noteLook(table.look(1), worker.lease.version, 4_050);
  expect(worker.wish(4_100)).toBe(undefined);
  table.limit = 4;
  worker.lease.noteLook(table.look(1), worker.lease.version, 4_100);
  expect(ask(worker, worker.wish(4_120), 4_120)).toMatchObject({ want: 9 });
  worker.begin();
  expect(worker.lease.running).toBe(3);
  table.limit = 3;
  worker.lease.noteLook(table.look(1), worker.lease.version, 4_121);
  expect(worker.wish(4_141)).toBe(undefined);
});

describe('shares', () => {
  const share = (limit: number, sharing: number, leastLacking: number | undefined, total = limit) =>
    keepOf({ limit, has: 0, total, sharing, leastLacking }, 0);

  test('nobody lets go of anything while all have enough', () => {
    expect(share(10, 3, undefined)).toBe(Number.POSITIVE_INFINITY);
    expect(keepOf({ limit: undefined, has: 9, total: 9, sharing: 2, leastLacking: 0 }, 0)).toBe(
      Number.POSITIVE_INFINITY,
    );
  });

  test('who has more than its share lets go of the rest, down to what the others have', () => {
    expect(share(10, 2, 0)).toBe(5);
    expect(share(50, 8, 1)).toBe(6);
    expect(share(50, 8, 6)).toBe(7);
    expect(share(50, 8, 7)).toBe(Number.POSITIVE_INFINITY);
  });

  test('after a limit was lowered nobody keeps what ends', () => {
    expect(share(4, 2, undefined, 10)).toBe(0);
    expect(share(4, 2, undefined, 4)).toBe(Number.POSITIVE_INFINITY);
  });

  test('where there are more workers than slots they take turns of a second', () => {
    expect(share(5, 20, 0)).toBe(1);
    expect(keepOf({ limit: 5, has: 1, total: 5, sharing: 20, leastLacking: 0 }, 1_000)).toBe(0);
    expect(keepOf({ limit: 5, has: 1, total: 5, sharing: 20, leastLacking: 1 }, 1_000)).toBe(
      Number.POSITIVE_INFINITY,
    );
  });
});

type Step = {
  at: 'tick' | 'job' | 'end' | 'arrive' | 'answer' | 'lose' | 'claim' | 'claimed';
  worker: number;
  ms: number;
};

test('whatever is lost, late or in another order: no more run than the limit, and in the end all that may', {
  timeout: 300_000,
}, () => {
  const steps = fc.array(
    fc.record({
      at: fc.constantFrom<Step['at']>(
        'tick',
        'tick',
        'job',
        'job',
        'end',
        'arrive',
        'answer',
        'answer',
        'lose',
        'claim',
        'claimed',
      ),
      worker: fc.integer({ min: 0, max: 3 }),
      ms: fc.integer({ min: 0, max: 200 }),
    }),
    { minLength: 50, maxLength: 400 },
  );
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), steps, (limit, walk) => {
      const table = new Table(limit);
      const workers = [0, 1, 2, 3].map((id) => new Simulated(id, table));
      /** Statements that have not arrived, also of those that have been given up; and the answers under way. */
      const underWay: { worker: Simulated; wish: Wish; isLost: boolean }[] = [];
      const answers = new Map<Simulated, LeaseShare>();
      let nowMs = 0;
      const check = () => {
        const running = workers.reduce((sum, { lease }) => sum + lease.running, 0);
        expect(running).toBeLessThanOrEqual(limit);
        expect(table.total).toBeLessThanOrEqual(limit);
        for (const { id, lease } of workers) {
          expect(lease.running).toBeLessThanOrEqual(table.rows.get(id)?.has ?? 0);
        }
      };
      const send = (worker: Simulated) => {
        const wish = worker.wish(nowMs);
        if (wish !== undefined) underWay.push({ worker, wish, isLost: false });
      };
      const arrive = (index: number) => {
        const [statement] = underWay.splice(index, 1);
        if (statement === undefined) return;
        const share = table.take(statement.worker.id, statement.wish);
        if (!statement.isLost) answers.set(statement.worker, share);
      };
      for (const { at, worker: id, ms } of walk) {
        const worker = workers[id];
        if (worker === undefined) continue;
        nowMs += ms;
        const answer = answers.get(worker);
        if (at === 'job') worker.backlog++;
        if (at === 'claim') worker.lease.noteClaiming();
        if (at === 'claimed') worker.lease.noteClaimed(nowMs);
        if (at === 'end' && worker.lease.running > 0) worker.lease.end(nowMs);
        if (at === 'arrive') arrive(ms % Math.max(underWay.length, 1));
        if (at === 'answer') {
          arrive(underWay.findIndex((statement) => statement.worker === worker && !statement.isLost));
          const now = answers.get(worker);
          if (now !== undefined) worker.lease.noteAnswer(now, nowMs);
          answers.delete(worker);
        }
        if (at === 'lose') {
          const pending = underWay.find((statement) => statement.worker === worker && !statement.isLost);
          if (pending !== undefined || answer !== undefined) worker.lease.noteFailure(nowMs, true);
          // The server may carry it out at any later moment.
          if (pending !== undefined) pending.isLost = true;
          answers.delete(worker);
        }
        worker.begin();
        send(worker);
        check();
      }
      // From here on nothing is lost, and nobody ends: all slots are in use as soon as there are jobs enough.
      for (const worker of workers) worker.backlog += 12;
      for (let round = 0; round < 60; round++) {
        nowMs += 500;
        while (underWay.length > 0) arrive(0);
        for (const worker of workers) {
          const share = answers.get(worker);
          if (share !== undefined) worker.lease.noteAnswer(share, nowMs);
          answers.delete(worker);
          worker.lease.noteLook(table.look(worker.id), worker.lease.version, nowMs);
          worker.begin();
          send(worker);
          check();
        }
      }
      expect(workers.reduce((sum, { lease }) => sum + lease.running, 0)).toBe(limit);
    }),
    { numRuns: depth(100, 3_000) },
  );
});
