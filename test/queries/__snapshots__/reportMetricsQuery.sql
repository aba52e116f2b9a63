    insert into "queue_metrics" (worker_id, report, queue, kind, at, minutes, wait_ms, run_ms, completed, retried, discarded, cancelled, snoozed, interrupted, lost,
      wait, run)
    select $1::int8, r.report, r.queue, r.kind, statement_timestamp(), 1, r.wait_ms, r.run_ms,
      r.completed, r.retried, r.discarded, r.cancelled, r.snoozed, r.interrupted, r.lost, r.wait, r.run
    from jsonb_to_recordset($2::text::jsonb)
      as r(report int8, queue text, kind text, wait_ms int8, run_ms int8,
        completed int4, retried int4, discarded int4, cancelled int4, snoozed int4, interrupted int4, lost int4, wait jsonb, run jsonb)
    on conflict do nothing
-- $1 = 42
-- $2 = "[{\"report\":42,\"queue\":\"mail\",\"kind\":\"mail\",\"completed\":3,\"retried\":1,\"discarded\":1,\"cancelled\":0,\"snoozed\":0,\"interrupted\":0,\"lost\":0,\"wait\":{\"3\":5},\"run\":{\"6\":5},\"wait_ms\":13,\"run_ms\":40}]"
