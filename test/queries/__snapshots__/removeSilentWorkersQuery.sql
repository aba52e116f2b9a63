    with silent as (
      select w.id from "queue_workers" as w
      where w.seen_at < statement_timestamp() - $1::float8 * interval '1 millisecond'
      for update skip locked
    )
    delete from "queue_workers" as w where w.id = any(array(select id from silent))
    returning w.name
-- $1 = 30000
