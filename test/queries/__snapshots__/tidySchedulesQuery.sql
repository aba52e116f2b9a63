    with renewable as (
      select s.name from "queue_schedules" as s
      where s.name in (select jsonb_array_elements_text($1::text::jsonb))
        and s.seen_at < statement_timestamp() - $2::float8 * interval '1 millisecond'
      for update skip locked
    ),
    renewed as (
      update "queue_schedules" as s set seen_at = statement_timestamp()
      where s.name in (select name from renewable)
      returning s.name
    ),
    forgotten as (
      select s.name from "queue_schedules" as s
      where s.declared_by is not null and s.seen_at < statement_timestamp() - $3::float8 * interval '1 millisecond'
        and s.name not in (select jsonb_array_elements_text($4::text::jsonb))
      for update skip locked
    )
    delete from "queue_schedules" as s where s.name in (select name from forgotten)
-- $1 = "[\"mail\"]"
-- $2 = 3600000
-- $3 = 604800000
-- $4 = "[\"mail\"]"
