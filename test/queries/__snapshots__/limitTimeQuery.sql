    select current_setting('statement_timeout') as before, date_part('epoch', statement_timestamp()) * 1000 as started,
      set_config('statement_timeout', $1, true) as now
-- $1 = "2000"
