    delete from "queue_schedules" as s
    where s.declared_by is not null and s.seen_at < statement_timestamp() - $1::float8 * interval '1 millisecond'
      and s.name not in (select jsonb_array_elements_text($2::text::jsonb))
-- $1 = 604800000
-- $2 = "[\"mail\"]"
