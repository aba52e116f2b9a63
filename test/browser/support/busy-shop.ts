import {
  createQueue,
  defineJob,
  defineSchedule,
  limitsIn,
  schedulesIn,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import * as workflows from 'drizzle-queue/schema/workflows';
import { addControlTables, addWorkflowTables } from '../../support/control-tables.ts';
import type { UsedTestDatabase } from '../../support/test-database.ts';

export const queue = createQueue({
  schedules: schedulesIn(control.queueSchedules),
  limits: limitsIn(control, { payments: { concurrency: 20, rate: { limit: 100, perMs: 1_000 } } }),
  workflows: workflowsIn(workflows),
});

const report = defineJob('nightly-report', { payload: unvalidated<unknown>(), queue: 'reports' });

/** The jobs that the tests use, by what they are. */
export interface BusyShop {
  readonly failed: number;
  readonly retrying: number;
  readonly running: number;
  readonly fulfilling: number;
}

/** A shop after a busy hour: what a dashboard shows when there is much to show. */
export async function fillShop({ client, db }: UsedTestDatabase, history: number): Promise<BusyShop> {
  await addControlTables({ client });
  await addWorkflowTables({ client });
  await client`
    insert into queue_workers (name, queues, session, started_at) values
      ('web-1:4120', '["mail","parcels"]', 1, now() - interval '5 hours'),
      ('web-2:2201', '["mail","payments"]', 2, now() - interval '5 hours'),
      ('batch-1:77', '["reports"]', 3, now() - interval '3 days')`;
  await client`select setseed(0.42)`;
  // Results of the last hour, in waves, and many older ones.
  await client`
    insert into queue_results (job_id, queue, kind, payload, state, output, errors, attempt, max_attempts, priority, fence,
      metadata, worker_id, created_at, run_at, claimed_at, finished_at)
    select n, k.queue, k.kind, jsonb_build_object('orderId', 40000 + n), 'completed', '{"ok": true}', '[]', 1, 20, 5, 1, '{}', 1,
      t.at - interval '2 s', t.at - t.run - t.wait, t.at - t.run, t.at
    from generate_series(1, ${history}::int) as n
    cross join lateral (select case when n <= ${history}::int - 6000 then now() - interval '61 min' - n * interval '1 s'
      else now() - interval '3600 s' * power(((${history}::int - n) / 6000.0), 1 + 0.12 * sin(n / 300.0)) end as at,
      make_interval(secs => 0.04 + 0.03 * (1 + sin(n / 410.0)) + 0.4 * power(random(), 8) + 0 * n) as run,
      make_interval(secs => 0.002 + 0.02 * power(random(), 6) * (1.6 + sin(n / 700.0)) + 0 * n) as wait) as t
    cross join lateral (select (array['mail','mail','parcels','payments'])[1 + n % 4] as queue,
      (array['send-receipt','send-reminder','ship-parcel','charge-card'])[1 + n % 4] as kind) as k`;
  const causes = [
    [
      'mail',
      'send-receipt',
      'MailboxError',
      'The mailbox of customer # is full [cause] SmtpError: 452 4.2.2 over quota',
      214,
    ],
    [
      'payments',
      'charge-card',
      'CardDeclinedError',
      'The card of order # was declined: insufficient funds',
      57,
    ],
    ['parcels', 'ship-parcel', 'TypeError', "Cannot read properties of undefined (reading 'weight')", 12],
    ['parcels', 'ship-parcel', 'JobTimeoutError', 'The attempt took longer than 30000 ms', 3],
  ] as const;
  for (const [index, [queue, kind, name, message, count]] of causes.entries()) {
    await client`
      insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority, fence, metadata,
        worker_id, created_at, run_at, claimed_at, finished_at)
      select ${history + 1_000 * (index + 1)}::int + n, ${queue}, ${kind},
        jsonb_build_object('orderId', 70000 + n, 'customer', jsonb_build_object('email', 'c' || n || '@example.com', 'newsletter', n % 2 = 0),
          'lines', jsonb_build_array(jsonb_build_object('sku', 'tea-' || n, 'quantity', 2, 'price', 12.50))),
        'discarded', (select jsonb_agg(jsonb_build_object('attempt', a, 'name', ${name}::text, 'message', replace(${message}::text, '#', (3000 + n)::text),
          'stack', ${name}::text || E': …\n    at sendReceipt (file:///app/jobs/mail.ts:41:11)\n    at async runAttempt (file:///app/worker.ts:88:5)',
          'startedAt', to_char((now() - n * interval '11 s' - (3 - a) * interval '5 min' - a * interval '83 ms') at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
          'at', to_char((now() - n * interval '11 s' - (3 - a) * interval '5 min') at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) order by a) from generate_series(1, 3) as a),
        3, 3, 5, 3, '{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}', 1,
        now() - n * interval '11 s' - interval '16 min', now() - n * interval '11 s' - t.run - interval '3 ms',
        now() - n * interval '11 s' - t.run, now() - n * interval '11 s'
      from generate_series(1, ${count}::int) as n
      cross join lateral (select make_interval(secs => 0.05 + 0.2 * random() + 0 * n) as run) as t`;
  }
  await client`select setval(pg_get_serial_sequence('queue_jobs', 'id'), ${history + 10_000}::int)`;
  await client`
    insert into queue_jobs (queue, kind, payload, run_at, max_attempts, worker_id, claimed_at, attempt, created_at)
    select (array['mail','parcels','payments'])[1 + n % 3], (array['send-receipt','ship-parcel','charge-card'])[1 + n % 3],
      jsonb_build_object('orderId', 90000 + n, 'email', 'c' || n || '@example.com'),
      case when n <= 40 then now() - n * interval '170 ms' when n <= 52 then now() - interval '20 s' else now() + n * interval '1 min' end, 20,
      case when n > 40 and n <= 52 then 1 + n % 2 end, case when n > 40 and n <= 52 then now() - (n - 40) * interval '900 ms' end,
      case when n > 40 and n <= 52 then 1 else 0 end, now() - interval '30 s'
    from generate_series(1, 180) as n`;
  const errors = JSON.stringify([
    {
      attempt: 1,
      name: 'CarrierError',
      message: 'The carrier answered 503 [cause] FetchError: upstream connect error',
      stack:
        'CarrierError: The carrier answered 503\n    at ship (file:///app/jobs/parcels.ts:18:9)\n    at async runAttempt (file:///app/worker.ts:88:5)',
    },
    {
      attempt: 2,
      name: 'CarrierError',
      message: 'The carrier answered 503 [cause] FetchError: upstream connect error',
      stack:
        'CarrierError: The carrier answered 503\n    at ship (file:///app/jobs/parcels.ts:18:9)\n    at async runAttempt (file:///app/worker.ts:88:5)',
    },
  ]);
  const [retrying] = await client<{ id: string }[]>`
    insert into queue_jobs (queue, kind, payload, run_at, max_attempts, attempt, created_at, claimed_at, errors, progress, unique_key, metadata)
    select 'parcels', 'ship-parcel', '{"orderId": 91207, "parcel": {"weight": 1.25, "fragile": true, "contents": ["tea", "pot", null]}, "tracking": 9007199254740993123}',
      now() + interval '42 s', 10, 2, now() - interval '3 min 12 s', now() - interval '20 s',
      jsonb_agg(e || jsonb_build_object('startedAt', to_char((now() - case when (e->>'attempt')::int = 1 then interval '2 min 52.4 s' else interval '19.9 s' end) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'at', to_char((now() - case when (e->>'attempt')::int = 1 then interval '2 min 50 s' else interval '19 s' end) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))),
      '{"done": 3, "total": 8}', 'order-91207', '{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}'
    from jsonb_array_elements(${errors}::text::jsonb) as e returning id`;
  const [running] = await client<
    { id: string }[]
  >`select max(id) as id from queue_jobs where worker_id is not null`;
  const [fulfilling] = await client<{ id: string }[]>`
    insert into queue_jobs (queue, kind, payload, run_at, max_attempts, created_at)
    values ('orders', 'fulfil-order', '{"orderId": 91300}', now() + interval '2 days 3 hours', 20, now() - interval '21 hours')
    returning id`;
  const fulfillingId = Number(fulfilling?.id);
  const cardError = JSON.stringify({
    name: 'CardError',
    message: 'The provider answered 503 [cause] FetchError: upstream connect error',
    stack: 'CardError: The provider answered 503\n    at charge (file:///app/jobs/orders.ts:31:11)',
  });
  await client`
    insert into queue_steps (job_id, queue, name, kind, signal, fence, attempts, started_at, ended_at, until, output, error)
    select ${fulfillingId}, 'orders', name, kind, signal, 1, tries, now() - began, now() - ended, now() + until, output::jsonb, error::jsonb
    from (values
      ('charge-91300', 'run', null, 2, interval '20 h', interval '20 h' - interval '340 ms', null::interval, '{"id": "ch_3PqLkd", "amount": 12990}', null),
      ('reserve', 'transaction', null, 1, interval '19 h 59 min', interval '19 h 59 min' - interval '8 ms', null, null, null),
      ('cool down', 'sleep', null, 1, interval '19 h 58 min', null, interval '-1 h', null, null),
      ('insure', 'run', null, 1, interval '3 min', null, null, null, ${cardError}),
      ('approval', 'signal', 'approval', 1, interval '2 min', null, interval '2 days 3 hours', null, null)
    ) as s (name, kind, signal, tries, began, ended, until, output, error)`;
  await client`
    insert into queue_mailboxes (job_id, queue, name, sent)
    values (${fulfillingId}, 'orders', 'reminder', '[{"id": "1", "value": null}]')`;
  await client`insert into queue_pauses (queue, paused_at) values ('reports', now() - interval '2 hours')`;
  await queue.schedules.set(
    db,
    defineSchedule('nightly-report', {
      job: report,
      payload: {},
      cron: '0 3 * * *',
      timeZone: 'Europe/Berlin',
    }),
  );
  await queue.schedules.set(
    db,
    defineSchedule('refresh-stock', { job: report, payload: {}, every: 300_000 }),
  );
  await queue.schedules.set(
    db,
    defineSchedule('weekly-digest', { job: report, payload: {}, cron: '30 8 * * mon' }),
  );
  await queue.schedules.pause(db, 'weekly-digest');
  await client`analyze`;
  return {
    failed: history + 1_007,
    retrying: Number(retrying?.id),
    running: Number(running?.id),
    fulfilling: fulfillingId,
  };
}
