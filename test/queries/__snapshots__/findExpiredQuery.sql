select r.queue from "queue_results" as r where r.finished_at < statement_timestamp() - $1::float8 * interval '1 millisecond' group by r.queue
-- $1 = 86400000
