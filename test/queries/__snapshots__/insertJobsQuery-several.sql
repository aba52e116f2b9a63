    insert into "queue_jobs" (queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata)
    select queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata from (
      select $1::text as queue, $2::text as kind, r.element as payload,
        $3::int2 as priority,
        coalesce(to_timestamp($4::float8 / 1000), statement_timestamp() + $5::float8 * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, $6::int2 as max_attempts,
        $7::text as unique_key,
        $8::text::jsonb as metadata, r.place from (
        select r.element, r.place as place
        from jsonb_array_elements($9::text::jsonb)
          with ordinality as r(element, place)) as r) as i order by place
    returning id
-- $1 = "mail"
-- $2 = "mail"
-- $3 = 5
-- $4 = null
-- $5 = 0
-- $6 = 20
-- $7 = null
-- $8 = "{\"text\":\"mail\"}"
-- $9 = "[{\"text\":\"mail\"},{\"text\":\"mail\"}]"
