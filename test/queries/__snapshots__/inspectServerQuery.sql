    select current_setting('server_version_num')::int4 as number,
      current_setting('server_version') as version, version() as product,
      current_setting('in_hot_standby', true) as standby,
      current_setting('transaction_read_only') as read_only, current_setting('autovacuum') as autovacuum,
      exists (select from pg_class where relname = '__drizzle_migrations') as has_migrations
