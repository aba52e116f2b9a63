    update "queue_schedules" as s set seen_at = statement_timestamp()
    where s.name in (select jsonb_array_elements_text($1::text::jsonb))
      and s.seen_at < statement_timestamp() - $2::float8 * interval '1 millisecond'
-- $1 = "[\"mail\"]"
-- $2 = 3600000
