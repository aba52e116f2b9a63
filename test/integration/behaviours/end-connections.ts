import pg from 'pg';

/** Ends all other connections to the database of a URL; answers how many there were. */
export async function endConnections(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ ended: boolean }>(`
      select pg_terminate_backend(pid) as ended from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`);
    return rows.filter(({ ended }) => ended).length;
  } finally {
    await client.end();
  }
}
