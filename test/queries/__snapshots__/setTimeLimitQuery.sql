select set_config('statement_timeout', $1, true) as now
-- $1 = "0"
