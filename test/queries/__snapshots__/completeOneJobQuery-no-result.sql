    delete from "queue_jobs" as j
    where j.queue = $1 and j.id = $2::int8
        and j.worker_id is not distinct from $3::int8 and j.fence = $4::int8
        and pg_current_xact_id_if_assigned() is not null and (select count(*) from generate_series(1, $5::int4) as a cross join generate_series(1, $6::int4) as b cross join generate_series(1, $7::int4) as c) > 0
    returning j.id
-- $1 = "mail"
-- $2 = 42
-- $3 = 42
-- $4 = 1
-- $5 = 1
-- $6 = 1
-- $7 = 1
