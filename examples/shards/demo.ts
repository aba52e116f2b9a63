/**
 * Tenants live in four databases, by their names. Two processes write the invoices of all orders. One database goes down, and one
 * process is killed. At the end each order has one invoice, in the database of its tenant.
 */
import { sql } from 'drizzle-orm';
import { shardOf } from 'drizzle-queue/shards';
import { addUp, onStage, until } from '../stage/on-stage.ts';
import { invoices, orders } from './schema.ts';
import { closeShards, openShards, placeOrder, type Shards } from './shards.ts';

const TENANTS = Array.from({ length: 40 }, (_, n) => `tenant-${n}`);
const DOWN = 'eu2';

await onStage(
  import.meta.url,
  async ({ urls, start }) => {
    const shards = openShards(urls);
    const livesIn = (tenant: string) => shardOf(shards, tenant).name;
    const elsewhere = TENANTS.filter((tenant) => livesIn(tenant) !== DOWN);
    const [first, second] = [start('worker.ts'), start('worker.ts')];
    for (const tenant of TENANTS) await placeOrder(shards, tenant);
    await untilInvoiced(shards, Object.keys(shards));
    console.log('Every tenant has an order, and its invoice.');

    const name = new URL(urls[Object.keys(shards).indexOf(DOWN)] ?? '').pathname.slice(1);
    await allowConnections(shards, name, false);
    await first.message();
    console.log(`${DOWN} is down. The tenants of the others order on.`);
    for (const tenant of elsewhere) await placeOrder(shards, tenant);
    await untilInvoiced(
      shards,
      Object.keys(shards).filter((each) => each !== DOWN),
    );
    const whileDown = await invoicesIn(shards, elsewhere.map(livesIn));
    console.log('They have their invoices. One process is killed, and the database is back.');
    await first.kill();
    await allowConnections(shards, name, true);
    for (const tenant of TENANTS) {
      await until(
        `${tenant} can order`,
        async () =>
          await placeOrder(shards, tenant).then(
            () => true,
            () => false,
          ),
      );
    }
    await untilInvoiced(shards, Object.keys(shards));
    await second.stop();

    addUp([
      ['Databases with tenants', 4, new Set(TENANTS.map(livesIn)).size],
      [`Invoices of the others while ${DOWN} was down`, 2 * elsewhere.length, whileDown],
      ...(await numbers(shards)),
    ]);
    await closeShards(shards);
    console.log('Every order has its one invoice, and a database that was down has cost the others nothing.');
  },
  4,
);

async function untilInvoiced(shards: Shards, names: readonly string[]): Promise<void> {
  await until(`all orders of ${names.join(', ')} have invoices`, async () => {
    for (const [name, { db }] of Object.entries(shards)) {
      if (names.includes(name) && (await db.$count(invoices)) < (await db.$count(orders))) return false;
    }
    return true;
  });
}

/** What an outage of one database looks like from outside: connections end, and no new one is let in. */
async function allowConnections({ us1 }: Shards, name: string, allowed: boolean): Promise<void> {
  await us1.db.execute(sql.raw(`alter database ${name} allow_connections ${allowed}`));
  if (allowed) return;
  await us1.db.execute(sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`);
}

async function invoicesIn(shards: Shards, names: readonly string[]): Promise<number> {
  let sum = 0;
  for (const [name, { db }] of Object.entries(shards)) {
    if (names.includes(name)) sum += await db.$count(invoices);
  }
  return sum;
}

async function numbers(shards: Shards): Promise<Parameters<typeof addUp>[0]> {
  const found = { orders: 0, invoices: 0, invoiced: 0, strangers: 0 };
  for (const [name, { db }] of Object.entries(shards)) {
    const written = await db.select().from(invoices);
    found.orders += await db.$count(orders);
    found.invoices += written.length;
    found.invoiced += new Set(written.map(({ orderId }) => orderId)).size;
    found.strangers += written.filter(({ tenant }) => shardOf(shards, tenant).name !== name).length;
  }
  return [
    ['Orders', 3 * TENANTS.length - ordersMissed(shards), found.orders],
    ['… with an invoice', found.orders, found.invoiced],
    ['… with a second one', 0, found.invoices - found.invoiced],
    ['Invoices in the database of another tenant', 0, found.strangers],
  ];
}

/** The tenants of the database that was down have not ordered then. */
function ordersMissed(shards: Shards): number {
  return TENANTS.filter((tenant) => shardOf(shards, tenant).name === DOWN).length;
}
