    select pg_try_advisory_lock(hashtextextended($1::text::regclass::oid::text, $2::int8)) as locked,
      pg_backend_pid() as pid, (select c.system_identifier::text from pg_control_system() as c) as node, set_config($3, $4, false), set_config($5, $6, false), set_config($7, $8, false), set_config($9, $10, false)
-- $1 = "\"queue_workers\""
-- $2 = 42
-- $3 = "tcp_keepalives_idle"
-- $4 = "5"
-- $5 = "tcp_keepalives_interval"
-- $6 = "2"
-- $7 = "tcp_keepalives_count"
-- $8 = "3"
-- $9 = "tcp_user_timeout"
-- $10 = "10000"
