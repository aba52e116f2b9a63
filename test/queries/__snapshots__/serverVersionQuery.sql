    select current_setting('server_version_num')::int4 as number,
      current_setting('server_version') as version
