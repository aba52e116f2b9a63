    select current_setting('server_version_num')::int4 as number,
      current_setting('server_version') as version, exists (select from pg_extension where extname = 'citus') as citus,
      has_function_privilege('pg_control_system()', 'execute') as identified, '{"a_key": 0}'::jsonb as a_sample, null::text as a_null, true as a_boolean,
      t.key, a.attname as name
    from jsonb_to_recordset($1::text::jsonb) as t(key text, name text)
    left join pg_attribute as a
      on a.attrelid = to_regclass(t.name) and a.attnum > 0 and not a.attisdropped
-- $1 = "[{\"key\":\"queueJobs\",\"name\":\"\\\"queue_jobs\\\"\"},{\"key\":\"queueResults\",\"name\":\"\\\"queue_results\\\"\"},{\"key\":\"queueWorkers\",\"name\":\"\\\"queue_workers\\\"\"},{\"key\":\"queuePauses\",\"name\":\"\\\"queue_pauses\\\"\"}]"
