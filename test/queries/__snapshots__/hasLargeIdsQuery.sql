    select s.seqmin > $1::int8 as large from pg_sequence as s
    where s.seqrelid = pg_get_serial_sequence($2, 'id')::regclass
-- $1 = 9007199254740991
-- $2 = "\"queue_jobs\""
