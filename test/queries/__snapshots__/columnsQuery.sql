    select attname as name from pg_attribute
    where attrelid = to_regclass($1) and attnum > 0 and not attisdropped
-- $1 = "\"queue_jobs\""
