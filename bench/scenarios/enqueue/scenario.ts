import { createOrders } from '../../child/orders.ts';
import { inTurns, missed, withSites } from '../../harness/bench.ts';
import { Child } from '../../harness/child.ts';
import { countFootprint, type Footprint } from '../../harness/footprint.ts';
import { print } from '../../harness/report.ts';
import { Site, type Sites } from '../../harness/site.ts';
import { Working } from '../../harness/working.ts';
import { median } from '../../median.ts';
import type { Scenario } from '../../scenario.ts';
import { drizzleQueue } from '../../systems/drizzle-queue/system.ts';
import type { BulkRequest } from './bulk.ts';
import { BARE, BULKS, type Bulk, FORMS, type Form } from './forms.ts';
import { type BulkRow, type FormRow, reportOf, type SingleRow } from './report.ts';
import type { SingleRequest, SingleResult } from './single.ts';
import type { TransactionsRequest, TransactionsResult } from './transactions.ts';

const CONNECTIONS = [1, 8, 32];
const DRIVERS = ['postgres.js', 'node-postgres'] as const;

/** What it costs to put jobs in: within the app's transactions, and in bulk. */
export const enqueue: Scenario = async (options) => {
  const { quick } = options;
  const runs = options.runs ?? (quick ? 1 : 3);
  const measuredMs = quick ? 300 : 1_500;
  const cells = FORMS.flatMap((form) =>
    (quick ? [8] : CONNECTIONS)
      .filter((connections) => form.connections === undefined || form.connections === connections)
      .map((connections) => ({ form, connections })),
  );
  const [forms, bulks, singles] = await withSites(async (sites) => [
    await inTurns(
      'enqueue',
      runs,
      cells,
      ({ form, connections }) => `${form.name}, ${connections} connections`,
      ({ form, connections }) => transact(sites, form, connections, measuredMs),
    ),
    await inTurns(
      'enqueue',
      runs,
      BULKS,
      ({ name }) => name,
      (bulk) => putIn(sites, bulk, quick),
    ),
    await inTurns(
      'enqueue',
      runs,
      DRIVERS,
      (driver) => `one job over ${driver}`,
      (driver) => putOne(sites, driver, measuredMs),
    ),
  ]);
  const formRows = forms.map(
    ({ of, values }): FormRow => ({
      form: of.form.name,
      connections: of.connections,
      perSecond: median(values.map(({ perSecond }) => perSecond)),
      p50Ms: median(values.map(({ p50Ms }) => p50Ms)),
      p99Ms: median(values.map(({ p99Ms }) => p99Ms)),
      walBytesPerTransaction: median(
        values.map(({ walBytes, perSecond }) => walBytes / ((perSecond * measuredMs) / 1_000)),
      ),
      deadlocks: Math.max(...values.map(({ deadlocks }) => deadlocks)),
    }),
  );
  const bulkRows = bulks.map(
    ({ of, values }): BulkRow => ({
      bulk: of.name,
      against: of.against,
      rowsPerSecond: median(values),
    }),
  );
  const singleRows = singles.flatMap(({ of: driver, values }) =>
    (['bare', 'enqueue'] as const).map(
      (form): SingleRow => ({
        form,
        driver,
        cpuMicros: median(values.map((value) => value[form].cpu)),
        micros: median(values.map((value) => value[form].time)),
      }),
    ),
  );
  const report = reportOf(formRows, bulkRows, singleRows, runs);
  print(report);
  const rate = (name: string, connections: number) =>
    formRows.find((row) => row.form === name && row.connections === connections)?.perSecond ?? Number.NaN;
  const rows = (name: string) => bulkRows.find(({ bulk }) => bulk === name)?.rowsPerSecond ?? Number.NaN;
  return {
    scenario: 'enqueue',
    runs,
    transactions: formRows,
    bulk: bulkRows,
    single: singleRows,
    missed: missed('enqueue', [
      ...CONNECTIONS.map((connections) => ({
        what: `with wake-ups ÷ without, ${connections} connections`,
        reached: rate('drizzle-queue', connections) / rate('drizzle-queue, wakeUps: false', connections),
        atLeast: 0.95,
      })),
      {
        what: 'enqueueMany ÷ a bare INSERT … SELECT',
        reached: rows('enqueueMany of 1,000') / rows(BARE),
        atLeast: 0.95,
      },
      ...DRIVERS.flatMap((driver) => {
        const row = (form: SingleRow['form']) =>
          singleRows.find((row) => row.driver === driver && row.form === form);
        const ratio = (of: 'micros' | 'cpuMicros') =>
          (row('enqueue')?.[of] ?? Number.NaN) / (row('bare')?.[of] ?? Number.NaN);
        return [
          {
            what: `time of one enqueue over ${driver} ÷ a bare insert's`,
            reached: ratio('micros'),
            atMost: 1.1,
          },
          {
            what: `CPU of one enqueue over ${driver} ÷ a bare insert's`,
            reached: ratio('cpuMicros'),
            atMost: 1.1,
          },
        ];
      }),
    ]),
    report,
  };
};

/** The transactions of one form, on a fresh database, while workers listen. */
async function transact(
  sites: Sites,
  { system, enqueuer, options, atWork = false }: Form,
  connections: number,
  measuredMs: number,
): Promise<TransactionsResult & Footprint> {
  const site = await Site.open(sites, system(atWork));
  const child = await Child.start();
  try {
    await site.sql.unsafe(createOrders);
    const count = await countFootprint(site.sql, site.system.table);
    const working = await Working.start(site, { sampleEvery: 1_000 });
    const warmUpMs = measuredMs / 5;
    const request: TransactionsRequest = {
      enqueuer,
      options,
      url: site.url,
      connections,
      warmUpMs,
      measuredMs,
    };
    // It is what `transactions` answers.
    const result = (await child.call('measure', 'transactions', request)) as TransactionsResult;
    await working.end();
    const footprint = await count();
    // The warm-up has written as much per transaction as the rest.
    return { ...result, ...footprint, walBytes: (footprint.walBytes * measuredMs) / (measuredMs + warmUpMs) };
  } finally {
    await child.end();
    await site.close();
  }
}

/** Rows per second of one way to put many jobs in. */
async function putIn(sites: Sites, bulk: Bulk, quick: boolean): Promise<number> {
  const site = await Site.open(sites, bulk.system);
  const child = await Child.start();
  try {
    const jobs = quick ? Math.min(bulk.jobs, 20_000) : bulk.jobs;
    if (bulk.jobs > 1_000) {
      await site.sql`create table numbers as select i as n from generate_series(1, ${jobs}::int4) as i`;
      await site.sql`vacuum (analyze) numbers`;
    }
    await site.sql`checkpoint`;
    const request: BulkRequest = {
      form: bulk.form,
      enqueuer: bulk.enqueuer,
      url: site.url,
      connections: 1,
      jobs,
      measuredMs: bulk.jobs > 1_000 ? 0 : quick ? 200 : 1_000,
    };
    // It is what `bulk` answers.
    return (await child.call('measure', 'bulk', request)) as number;
  } finally {
    await child.end();
    await site.close();
  }
}

/** What one enqueue costs, and one insert by hand. */
async function putOne(
  sites: Sites,
  driver: SingleRequest['driver'],
  measuredMs: number,
): Promise<SingleResult> {
  const site = await Site.open(sites, drizzleQueue('', { keepResult: false }));
  const child = await Child.start();
  try {
    await site.sql`checkpoint`;
    const request: SingleRequest = { driver, url: site.url, measuredMs: 2 * measuredMs };
    // It is what `single` answers.
    return (await child.call('measure', 'single', request)) as SingleResult;
  } finally {
    await child.end();
    await site.close();
  }
}
