import { setTimeout as delay } from 'node:timers/promises';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import { expect, test } from 'vitest';
import { approval, fulfil, queue } from '../../examples/order-fulfilment/jobs.ts';
import { orders } from '../../examples/order-fulfilment/schema.ts';
import { depth } from '../support/depth.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { dieAt, type Place, startDoomedWorker, tellOf } from '../worker/doomed-worker.ts';

/** How often a worker dies: at each of the eleven places below once, or again and again. */
const KILLS = depth(11, 50);
/** How many workers run at once, each of which has its own place to die at. */
const WORKERS = 3;
/** Orders that are under way at any moment while workers die. */
const UNDER_WAY = 60;

const database = useTestDatabase({ max: 5, template: false });

const PLACES = [
  'at:claim: answered',
  'at:begin: written',
  'at:step: done',
  'at:step: recorded',
  'at:signal: received',
  'at:settle: parked',
  'at:complete: checked',
  'at:undo: marked',
  'unsent',
  'sent',
  'moment',
] as const satisfies readonly Place[];
const worker = { database, program: 'examples/order-fulfilment/worker.ts', from: 'step: recorded' } as const;

interface Order {
  readonly id: number;
  readonly cents: number;
  /** Whether the clerk agrees; `undefined` where the clerk has no say. */
  readonly agreed: boolean | undefined;
}

// The example uses drizzle-orm 0.45 whatever this run was started for.
test.skipIf(process.env.DRIZZLE === 'v1')(
  `workers are killed ${KILLS} times: each charge, reservation, parcel and refund is where it belongs`,
  async () => {
    const { db, client } = database;
    await migrate(db, { migrationsFolder: 'examples/order-fulfilment/drizzle' });

    const places = Array.from({ length: KILLS }, (_, n) => PLACES[n % PLACES.length] ?? 'moment');
    const placed: Order[] = [];
    const undecided: Order[] = [];

    const dying = dieAt(worker, places, WORKERS);
    let areDying = true;
    const shop = (async () => {
      while (areDying) {
        const [row] = await client<{ live: number }[]>`select count(*)::int as live from queue_jobs`;
        for (let live = row?.live ?? 0; live < UNDER_WAY; live++) {
          const order = await placeOrder(placed.length);
          placed.push(order);
          if (order.agreed !== undefined) undecided.push(order);
        }
        // The clerk is behind by a few orders: some answers come before their waits, some long after.
        while (undecided.length > Math.random() * 30) await decide(undecided.shift());
        // The pace of the shop.
        await delay(20);
      }
    })();
    try {
      await Promise.race([dying, shop]);
    } finally {
      areDying = false;
    }
    await shop;
    const deaths = await dying;
    for (const order of undecided.splice(0)) await decide(order);

    const survivor = startDoomedWorker(worker);
    await until(async () => (await client`select from queue_jobs`).length === 0);
    survivor.child.kill('SIGTERM');
    expect(await survivor.exit).toEqual([0, null]);

    const repeats =
      await client`select what, sum(times - 1)::int as times from service_calls group by 1 order by 1`;
    tellOf(deaths, `${placed.length} orders`);
    console.log(`repeated calls: ${repeats.map(({ what, times }) => `${what} ${times}`).join(', ')}`);

    expect(deaths).toHaveLength(KILLS);
    expect(deaths.some(({ held }) => held > 0)).toBe(true);
    const refused = placed.filter(({ agreed }) => agreed === false);
    expect(refused.length).toBeGreaterThan(0);
    const isRefused = ({ agreed }: Order) => agreed === false;

    const booked = async (what: string) =>
      (await client`select order_id::int as id from service_calls where what = ${what} order by 1`).map(
        ({ id }) => id,
      );
    const ids = (some: readonly Order[]) => some.map(({ id }) => id);
    expect(await booked('charge')).toEqual(ids(placed));
    expect(await booked('parcel')).toEqual(ids(placed.filter((order) => !isRefused(order))));
    expect(await booked('refund')).toEqual(ids(refused));
    const moves = await client`
      select order_id::int as id, array_agg(pieces order by id) as pieces
      from stock_moves group by 1 order by 1`;
    expect(moves.map(({ id, pieces }) => ({ id, pieces }))).toEqual(
      placed.map((order) => ({ id: order.id, pieces: isRefused(order) ? [-1, 1] : [-1] })),
    );
    const ends = await client`
      select o.id::int as id, o.status, r.state, r.output, count(*) over (partition by o.id)::int as ends
      from orders o join queue_results r on (r.payload ->> 'orderId')::bigint = o.id order by 1`;
    expect(ends.map((end) => ({ ...end }))).toEqual(
      placed.map((order) => {
        const status = isRefused(order) ? 'refunded' : 'shipped';
        return { id: order.id, status, state: 'completed', output: status, ends: 1 };
      }),
    );
    expect(ends).toHaveLength(await db.$count(orders));
    // No step is open, and no order was shipped without the clerk.
    expect(
      await client`select name, kind from queue_steps where ended_at is null and kind <> 'sleep'`,
    ).toEqual([]);
    const answers = await client`
      select (r.payload ->> 'orderId')::int as id, (s.output ->> 'ok')::boolean as agreed,
        s.output ->> 'by' as by
      from queue_steps s join queue_results r on r.job_id = s.job_id where s.name = 'approval' order by 1`;
    const decided = placed.filter(({ agreed }) => agreed !== undefined);
    expect(answers.map((answer) => ({ ...answer }))).toEqual(
      decided.map(({ id, agreed }) => ({ id, agreed, by: 'Ada' })),
    );
  },
  600_000,
);

/** Every other order is expensive, and of those the clerk refuses every third. */
async function placeOrder(n: number): Promise<Order> {
  const cents = n % 2 === 1 ? 99_900 : 1_500;
  const agreed = n % 2 === 1 ? n % 3 !== 0 : undefined;
  return await database.db.transaction(async (tx) => {
    const [order] = await tx.insert(orders).values({ cents }).returning();
    if (order === undefined) throw new Error('no order');
    await queue.enqueue(tx, fulfil, { orderId: order.id, cents }, { uniqueKey: `order-${order.id}` });
    return { id: order.id, cents, agreed };
  });
}

/** Says the opposite and takes it back, then says it twice. */
async function decide(order: Order | undefined): Promise<void> {
  if (order?.agreed === undefined) return;
  const { id, agreed } = order;
  const to = { job: fulfil, uniqueKey: `order-${id}` };
  const { workflows } = queue;
  await expect(
    database.db.transaction(async (tx) => {
      await workflows.signal(tx, to, approval, { by: 'Bob', ok: !agreed }, { key: `decision-${id}` });
      tx.rollback();
    }),
  ).rejects.toThrow();
  const answer = { by: 'Ada', ok: agreed };
  const key = `decision-${id}`;
  expect(await workflows.signal(database.db, to, approval, answer, { key })).toBe('sent');
  // Or the order has ended meanwhile.
  expect(['duplicate', 'gone']).toContain(await workflows.signal(database.db, to, approval, answer, { key }));
}
