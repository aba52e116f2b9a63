    with i as materialized (
      select $1::text::jsonb || jsonb_build_object('at', to_char(statement_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) as error
    ),
    free as materialized (
      select j.id from "queue_jobs" as j
      where j.queue = $2 and j.id = $3::int8 and j.worker_id is null
        and j.run_at <= statement_timestamp()
      for no key update skip locked
    )
    update "queue_jobs" as j set run_at = 'infinity', errors = case when i.error is null then j.errors
        else (case when jsonb_array_length(j.errors) >= 10 then j.errors - 0 else j.errors end) || i.error end
    from i
    where j.queue = $4 and j.id = any(array(select id from free))
    returning j.id
-- $1 = "{\"attempt\":1,\"name\":\"Error\",\"message\":\"mail\",\"stack\":\"mail\"}"
-- $2 = "mail"
-- $3 = 42
-- $4 = "mail"
