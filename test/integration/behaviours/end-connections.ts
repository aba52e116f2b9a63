import pg from 'pg';

/** How long the server may take to end one. */
const PATIENCE_MS = 10_000;

/**
 * Ends all other connections to the database of a URL; answers how many there were. They are over when it returns: without that, what
 * a test asks next may be answered by one that has not yet heard of its end.
 */
export async function endConnections(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ ended: boolean }>(`
      select pg_terminate_backend(pid, ${PATIENCE_MS}) as ended from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`);
    return rows.filter(({ ended }) => ended).length;
  } finally {
    await client.end();
  }
}
