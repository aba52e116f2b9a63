    select j.id, j.queue, j.metadata -> $1::text ->> 'id' as foreign_id
    from "queue_jobs" as j
    where j.id > $2 and j.metadata -> $3::text ->> 'source' = $4::text
    order by j.id limit $5
-- $1 = "drizzle-queue:import"
-- $2 = 42
-- $3 = "drizzle-queue:import"
-- $4 = "mail"
-- $5 = 10
