import { setTimeout as delay } from 'node:timers/promises';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import { expect, test } from 'vitest';
import { approve } from '../../examples/order-fulfilment/approvals.ts';
import { approval, fulfil, queue } from '../../examples/order-fulfilment/jobs.ts';
import { mails as mailsTable, orders } from '../../examples/order-fulfilment/schema.ts';
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
  'at:begin: written',
  'at:claim: answered',
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

const isDecided = ({ agreed }: Order) => agreed !== undefined;

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
        const links = await mailbox();
        for (const order of undecided.splice(0)) {
          const link = links.get(order.id);
          if (link === undefined || Math.random() < 0.9) undecided.push(order);
          else await decide(order, link);
        }
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

    const survivor = startDoomedWorker(worker);
    await until(async () => (await mailbox()).size === placed.filter(isDecided).length);
    const links = await mailbox();
    for (const order of undecided) await decide(order, links.get(order.id));
    await until(async () => (await client`select from queue_jobs`).length === 0);
    survivor.child.kill('SIGTERM');
    expect(await survivor.exit()).toEqual([0, null]);

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
    const decided = placed.filter(isDecided);
    expect(answers.map((answer) => ({ ...answer }))).toEqual(
      decided.map(({ id, agreed }) => ({ id, agreed, by: 'Ada' })),
    );
    // However often a mail was repeated, it had the same link.
    const mails = await client`select order_id::int as id from mails order by 1`;
    expect(mails.map(({ id }) => id)).toEqual(ids(decided));
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

/** The links that the clerk has got, by the ids of the orders. */
async function mailbox(): Promise<Map<number, string>> {
  const mails = await database.db.select().from(mailsTable);
  return new Map(mails.map(({ orderId, link }) => [orderId, link]));
}

/** Says the opposite and takes it back, then presses the button of the link's page twice. */
async function decide({ agreed }: Order, link = ''): Promise<void> {
  await expect(
    database.db.transaction(async (tx) => {
      const token = new URL(link).searchParams.get('token');
      await queue.workflows.redeem(tx, approval, token, { by: 'Bob', ok: !agreed });
      tx.rollback();
    }),
  ).rejects.toThrow('Rollback');
  const press = async () => {
    const body = new URLSearchParams({ by: 'Ada', decision: agreed ? 'ship' : 'refuse' });
    const answer = await approve(database.db, new Request(link, { method: 'POST', body }));
    return await answer.text();
  };
  expect(await press()).toBe('Thank you');
  // Or the order has ended meanwhile.
  expect(['You have decided before', 'This order is no longer open']).toContain(await press());
}
