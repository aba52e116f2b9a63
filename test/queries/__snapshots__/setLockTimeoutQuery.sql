    with before as materialized (select current_setting('lock_timeout') as former)
    select former, set_config('lock_timeout', $1::text, true) as set from before
-- $1 = "100ms"
