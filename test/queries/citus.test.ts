import { readFileSync } from 'node:fs';
import { getTableName, is } from 'drizzle-orm';
import { PgDialect, PgTable } from 'drizzle-orm/pg-core';
import * as queueSchema from 'drizzle-queue/schema';
import * as control from 'drizzle-queue/schema/control';
import { queueMetrics } from 'drizzle-queue/schema/metrics';
import { beforeAll, describe, expect, test } from 'vitest';
import { inContext } from '../../src/core/sql/statement-context.ts';
import { citusLayout } from '../support/citus.ts';
import { addControlTables, addMetricsTable, addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { type Catalog, REFUSALS, type Refusal, readCatalog, refusalsOf } from './support/citus-rules.ts';
import { tables } from './support/jobs.ts';
import { queryTreeOf } from './support/query-tree.ts';
import { factsOf } from './support/statement-facts.ts';
import { allStatements } from './support/statements.ts';

const dialect = new PgDialect();
const database = useTestDatabase({ max: 1 });
let catalog: Catalog;

beforeAll(async () => {
  await addControlTables(database);
  await addMetricsTable(database);
  await addWorkflowTables(database);
  catalog = await readCatalog(database.client);
});

async function refused(text: string): Promise<Refusal[]> {
  return [...refusalsOf(await queryTreeOf(database.client, text), catalog)].sort();
}

test('the migrations of docs/scaling.md put each table somewhere, once', () => {
  const { distributed, reference } = citusLayout();
  const all = Object.values({ ...queueSchema, ...control, queueMetrics })
    .filter((value) => is(value, PgTable))
    .map((table) => getTableName(table));
  expect([...distributed, ...reference].sort()).toEqual(all.sort());
  // A key that lacks the queue could not be unique across shards.
  expect([...reference].sort()).toEqual([
    'queue_limits',
    'queue_metrics',
    'queue_pauses',
    'queue_schedules',
    'queue_workers',
  ]);
});

const { about } = factsOf(Object.keys(allStatements(tables)));

describe('Citus', () => {
  const statements = Object.entries(
    allStatements(inContext(tables, { server: { distributed: true, identified: true } })),
  ).map(([name, query]) => [name, dialect.sqlToQuery(query).sql] as const);
  const sent = statements.filter(([name]) => about(name).insteadOnCitus === undefined);
  const notSent = statements.filter(([name]) => about(name).insteadOnCitus !== undefined);

  test.each(sent)('takes %s', async (_, text) => {
    const found = (await refused(text)).map((refusal) => `${refusal}: ${REFUSALS[refusal]}`);
    expect(found, 'its docstring has no @insteadOnCitus').toEqual([]);
  });

  test.each(notSent.filter(([name]) => about(name).insteadOnCitus?.why === undefined))(
    'refuses %s, whose docstring gives no other reason why it is not sent',
    async (_, text) => {
      expect(await refused(text)).not.toEqual([]);
    },
  );

  test('is sent as many as docs/scaling.md says', () => {
    const page = readFileSync(new URL('../../docs/scaling.md', import.meta.url), 'utf8');
    const now = `now: ${sent.length} that are sent to Citus, and ${notSent.length} that are not.`;
    expect(page.includes(now), now).toBe(true);
  });

  test('refuses what is not sent there by these rules', async () => {
    const lines: string[] = [];
    for (const [name, text] of notSent) {
      const found = await refused(text);
      if (found.length > 0) lines.push(`${name}: ${found.join(', ')}\n`);
    }
    await expect(lines.join('')).toMatchFileSnapshot('./__snapshots__/citus-refusals.txt');
  });
});

test('no statement that Citus is sent counts on a wait for a lock that ends soon', () => {
  // `lock_timeout` is not set on the nodes, so Citus is sent the statement without it.
  const patient = Object.entries(allStatements(tables))
    .filter(([name]) => about(name).insteadOnCitus === undefined)
    .map(([name, query]) => [name, dialect.sqlToQuery(query).sql] as const)
    .filter(([, text]) => text.includes("'lock_timeout'") && !text.includes('skip locked'))
    .map(([name]) => name);
  const tagged = Object.keys(allStatements(tables)).filter((name) => about(name).waitsOnCitus !== undefined);
  expect(tagged, 'with @waitsOnCitus').toEqual(patient);
  expect(patient).not.toEqual([]);
});

/** The smallest statement that each rule refuses, and its like that Citus takes. */
const EXAMPLES: Readonly<Record<Refusal, readonly [bad: string, good: string]>> = {
  returning: [
    `update queue_jobs as j set attempt = 1 where j.queue = $1 and j.id = $2
     returning date_part('epoch', j.run_at)`,
    `with u as (update queue_jobs as j set attempt = 1 where j.queue = $1 and j.id = $2 returning j.run_at)
     select date_part('epoch', u.run_at) from u`,
  ],
  conflict: [
    `insert into queue_workers (id, name, queues) overriding system value values ($1, $2, $3)
     on conflict (id) do update set seen_at = statement_timestamp()`,
    `insert into queue_workers (id, name, queues, seen_at) overriding system value
     values ($1, $2, $3, statement_timestamp()) on conflict (id) do update set seen_at = excluded.seen_at`,
  ],
  conditional: [
    `update queue_jobs as j set claimed_at = case when j.attempt > 1 then clock.at end
     from (select statement_timestamp() as at) as clock where j.queue = $1 and j.id = $2`,
    `with clock as materialized (select statement_timestamp() as at)
     update queue_jobs as j set claimed_at = case when j.attempt > 1 then (select at from clock) end
     where j.queue = $1 and j.id = $2`,
  ],
  stable: [
    `update queue_jobs as j set run_at = j.claimed_at + interval '1 s' where j.queue = $1 and j.id = $2`,
    `update queue_jobs as j set run_at = statement_timestamp() + interval '1 s' where j.queue = $1 and j.id = $2`,
  ],
  volatile: [
    'update queue_jobs as j set run_at = clock_timestamp() where j.queue = $1 and j.id = $2',
    'update queue_jobs as j set run_at = statement_timestamp() where j.queue = $1 and j.id = $2',
  ],
  lateral: [
    `select i.queue, j.id from unnest($1::text[]) as i(queue)
     left join lateral (select j.id from queue_jobs as j where j.queue = i.queue limit 1) as j on true`,
    `select p.priority, j.id from generate_series(0, 9) as p(priority)
     left join lateral (
       select j.id from queue_jobs as j where j.queue = $1 and j.priority = p.priority limit 1) as j on true`,
  ],
  join: [
    `select i.queue, j.id, r.job_id from unnest($1::text[]) as i(queue)
     left join lateral (select j.id from queue_jobs as j where j.queue = i.queue limit 1) as j on true
     left join lateral (select r.job_id from queue_results as r where r.queue = i.queue limit 1) as r on true`,
    `select i.id, j.id, r.job_id from unnest($1::int8[]) as i(id)
     left join lateral (select j.id from queue_jobs as j where j.queue = $2 and j.id = i.id) as j on true
     left join lateral (select r.job_id from queue_results as r where r.queue = $3 and r.job_id = i.id) as r
       on true`,
  ],
  lock: [
    'select j.id from queue_jobs as j where j.queue = any($1::text[]) for update skip locked',
    'select j.id from queue_jobs as j where j.queue = $1 for update skip locked',
  ],
  target: [
    `delete from queue_results as r
     where (r.job_id, r.queue) in (select x.job_id, x.queue from queue_results as x where x.queue = $1)`,
    `delete from queue_results as r where r.queue = $1
       and r.job_id in (select x.job_id from queue_results as x where x.queue = $2)`,
  ],
  notify: [
    `with u as (update queue_jobs as j set attempt = 1 where j.queue = $1 returning j.id)
     select pg_notify($2, '') from u`,
    `with i as (insert into queue_jobs (queue, kind, max_attempts, payload) values ($1, $2, $3, $4) returning id)
     select pg_notify($5, '') from i`,
  ],
  insert: [
    `insert into queue_jobs (queue, kind, max_attempts, payload, run_at)
     select i.queue, 'k', 1, 'null', clock_timestamp() from unnest($1::text[]) as i(queue)`,
    `insert into queue_jobs (queue, kind, max_attempts, payload, run_at)
     select i.queue, 'k', 1, 'null', statement_timestamp() from unnest($1::text[]) as i(queue)`,
  ],
  beside: [
    `with clock as materialized (select clock_timestamp() as at)
     select j.id from queue_jobs as j, clock where j.queue = $1 and j.run_at < clock.at for update of j`,
    `with clock as materialized (select statement_timestamp() as at)
     select j.id from queue_jobs as j, clock where j.queue = $1 and j.run_at < clock.at for update of j`,
  ],
  ctid: [
    `with n as (insert into queue_keys (queue, kind, key, until) values ($1, $2, $3, 'infinity') returning queue)
     delete from queue_notes as d where d.queue = $4 and d.ctid in (
       select x.ctid from queue_notes as x where x.queue = $5 limit 1)`,
    `with n as (insert into queue_keys (queue, kind, key, until) values ($1, $2, $3, 'infinity') returning queue)
     delete from queue_notes as d where d.queue = $4 and d.id in (
       select x.id from queue_notes as x where x.queue = $5 limit 1)`,
  ],
  recursive: [
    `with recursive k as (
       (select j.kind from queue_jobs as j where j.queue = $1 order by j.kind limit 1)
       union all
       select (select j.kind from queue_jobs as j where j.queue = k.kind and j.kind > k.kind limit 1)
       from k where k.kind is not null)
     select kind from k`,
    `with recursive k as (
       (select j.kind from queue_jobs as j where j.queue = $1 order by j.kind limit 1)
       union all
       select (select j.kind from queue_jobs as j where j.queue = $2 and j.kind > k.kind limit 1)
       from k where k.kind is not null)
     select kind from k`,
  ],
  correlated: [
    `with w as materialized (select * from jsonb_to_recordset($1::text::jsonb) as w(queue text, key text)),
     i as (insert into queue_keys (queue, kind, key, until) select w.queue, $2, w.key, 'infinity' from w
       where not exists (
         select k.key from queue_keys as k where k.queue = w.queue and k.key = w.key) returning key)
     select w.key from w join i on i.key = w.key`,
    `with w as materialized (select * from jsonb_to_recordset($1::text::jsonb) as w(queue text, key text)),
     i as (insert into queue_keys (queue, kind, key, until) select w.queue, $2, w.key, 'infinity' from w
       where w.key not in (select k.key from queue_keys as k where k.queue = $3) returning key)
     select w.key from w join i on i.key = w.key`,
  ],
  upsert: [
    `insert into queue_keys as k (queue, kind, key, until) values ($1, $2, $3, 'infinity')
     on conflict (queue, kind, key) do update set until = excluded.until
     where not exists (select j.id from queue_jobs as j where j.queue = $4)`,
    `insert into queue_keys as k (queue, kind, key, until) values ($1, $2, $3, 'infinity')
     on conflict (queue, kind, key) do update set until = excluded.until where k.until < excluded.until`,
  ],
  columnless: [
    `with changed as (update queue_schedules as s set paused_at = null where s.name = $1 returning s.name)
     select exists (select from changed) as changed,
       exists (select from queue_schedules as s where s.name = $2) as known`,
    `with changed as (update queue_schedules as s set paused_at = null where s.name = $1 returning s.name)
     select exists (select name from changed) as changed,
       exists (select s.name from queue_schedules as s where s.name = $2) as known`,
  ],
  locked: [
    `with s as (
       select s.name from queue_schedules as s where s.name in (select jsonb_array_elements_text($1::text::jsonb))
       for update skip locked)
     update queue_schedules as u set seen_at = statement_timestamp() where u.name in (select name from s)`,
    `update queue_schedules as u set seen_at = statement_timestamp()
     where u.name in (select jsonb_array_elements_text($1::text::jsonb))`,
  ],
  subscript: [
    `update queue_jobs as j set claimed_at = (array[statement_timestamp()])[j.attempt]
     where j.queue = $1 and j.id = $2`,
    `update queue_jobs as j set claimed_at = greatest((array[statement_timestamp()])[j.attempt])
     where j.queue = $1 and j.id = $2`,
  ],
  session: [
    'select w.id, pg_try_advisory_xact_lock_shared(w.id) from queue_workers as w',
    'select i.id, pg_try_advisory_xact_lock_shared(i.id) from unnest($1::int8[]) as i(id)',
  ],
};

describe('the rules', () => {
  test.each(Object.entries(EXAMPLES))('refuse what Citus refuses: %s', async (rule, [bad, good]) => {
    expect(await refused(bad)).toContain(rule);
    expect(await refused(good)).toEqual([]);
  });
});
