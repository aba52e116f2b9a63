import { beforeAll, beforeEach, expect, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { addWorkers, claimGroups, clearGroups } from './support/groups.ts';

const database = useTestDatabase({ max: 2 });
let worker = 0;
beforeAll(() => addControlTables(database));
beforeEach(async () => {
  await clearGroups(database.client);
  [worker = 0] = await addWorkers(database.client);
});

/** Tenants of very different load: so many jobs for each, in the order of the tenants. */
async function fill(jobsOf: readonly number[]): Promise<void> {
  await database.client`
    with given as (
      select 't' || place as tenant, jobs from unnest(${jobsOf}::int[]) with ordinality as t(jobs, place)
    ),
    inserted as (
      insert into queue_jobs (queue, kind, payload, max_attempts, group_key)
      select 'q', 'k', 'null', 20, g.tenant from given as g cross join generate_series(1, g.jobs)
      returning group_key
    )
    insert into queue_notes (queue, due_at, group_keys) select 'q', now(), array_agg(distinct group_key) from inserted`;
}

/** Claims, and ends what was claimed at once; answers the groups in the order of the claims. */
async function work(claims: number, limit: number): Promise<string[]> {
  const order: string[] = [];
  for (let n = 0; n < claims; n++) {
    const { jobs } = await claimGroups(database.db, worker, { limit });
    order.push(...jobs.map(({ group = '' }) => group));
    await database.client`delete from queue_jobs where worker_id = ${worker}`;
  }
  return order;
}

/** Jain's index: 1 when all have the same, 1/n when one has everything. */
function fairness(counts: readonly number[]): number {
  const sum = counts.reduce((total, count) => total + count, 0);
  return sum ** 2 / (counts.length * counts.reduce((total, count) => total + count ** 2, 0));
}

const countsOf = (order: readonly string[], tenants: number) =>
  Array.from({ length: tenants }, (_, n) => order.filter((tenant) => tenant === `t${n + 1}`).length);

test.each([7, 20, 150])(
  'a hundred tenants of very different load get the same, in claims of %i',
  async (limit) => {
    await fill(Array.from({ length: 100 }, (_, n) => (n % 10 === 0 ? 2_000 : 40)));
    const order = await work(Math.ceil(2_500 / limit), limit);
    expect(fairness(countsOf(order, 100))).toBeGreaterThan(0.95);
  },
  240_000,
);

test('by weight: three times the jobs', async () => {
  await fill([2_000, 2_000, 2_000]);
  await database.client`insert into queue_limits (queue, group_key, weight) values ('q', 't2', 3)`;
  const [one = 0, two = 0, three = 0] = countsOf(await work(60, 10), 3);
  expect(two / one).toBeGreaterThan(2.7);
  expect(two / one).toBeLessThan(3.3);
  expect(one / three).toBeCloseTo(1, 0);
});

test('the first job of a tenant waits for one round of the others, whatever their backlog', async () => {
  await fill([20_000, ...new Array(20).fill(100)]);
  await work(10, 10);
  await fill([...new Array(21).fill(0), 1]);
  // The new one is `t22`.
  const order = await work(3, 10);
  expect(order.indexOf('t22')).toBeGreaterThanOrEqual(0);
  expect(order.indexOf('t22')).toBeLessThan(21);
});

test('who comes back often gains nothing', async () => {
  await fill([1_000, 0]);
  let ofOften = 0;
  let ofLarge = 0;
  for (let n = 0; n < 100; n++) {
    // A job at a time, each as soon as the one before has begun.
    await database.client`
      with inserted as (
        insert into queue_jobs (queue, kind, payload, max_attempts, group_key) values ('q', 'k', 'null', 20, 'often')
      )
      insert into queue_notes (queue, due_at, group_keys) values ('q', now(), '{often}')`;
    const order = await work(1, 1);
    ofOften += order.filter((tenant) => tenant === 'often').length;
    ofLarge += order.filter((tenant) => tenant === 't1').length;
  }
  expect(Math.abs(ofOften - ofLarge)).toBeLessThan(15);
});
