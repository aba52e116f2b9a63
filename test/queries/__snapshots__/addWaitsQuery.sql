    insert into "queue_waits" (batch_id, job_id, queue, policy)
    select batch_id, job_id, name ->> 'queue', name ->> 'policy' from rows from (
      unnest($1::text::int8[]),
      unnest($2::text::int8[]),
      jsonb_array_elements($3::text::jsonb)
    ) as r(batch_id, job_id, name)
    on conflict do nothing
-- $1 = "{42}"
-- $2 = "{42}"
-- $3 = "[{\"queue\":\"mail\",\"policy\":\"parent\"}]"
