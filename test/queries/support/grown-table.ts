import type { Connection } from '../../support/test-database.ts';

type Client = Connection['client'];

/** More than 512 kB. */
const PAGES = 66;
const ORDER = `'{"orderId": 1}'`;
const LARGE = `(select to_jsonb(string_agg(random()::text, '')) from generate_series(1, 100))`;

/**
 * The states in which `queue_jobs` may be just large enough for plans that are kept for grown tables: which
 * rows it has, and what the statistics say. Gather none by autovacuum meanwhile.
 *
 * @param group of a row, as SQL of its number `n`
 */
export function grownTables(
  group = 'null::text',
): readonly (readonly [string, (client: Client) => Promise<void>])[] {
  /** Adds rows until the table has so many pages. */
  async function fill(client: Client, queue = 'q', payload = ORDER): Promise<void> {
    for (;;) {
      const [row] = await client<
        { pages: number }[]
      >`select (pg_relation_size('queue_jobs') / 8192)::int4 as pages`;
      if (row !== undefined && row.pages >= PAGES) return;
      await client.unsafe(`
        insert into queue_jobs (queue, kind, payload, max_attempts, priority, run_at, group_key)
        select '${queue}', 'k', ${payload}, 20, 5, now(), ${group} from generate_series(1, 100) as n`);
    }
  }
  const states: Readonly<Record<string, (client: Client) => Promise<unknown>>> = {
    'never analysed': (client) => fill(client),
    'analysed while it was empty': async (client) => {
      await client`analyze queue_jobs`;
      await fill(client);
    },
    'emptied and vacuumed before': async (client) => {
      await fill(client);
      await client`delete from queue_jobs`;
      await client`vacuum analyze queue_jobs`;
      await fill(client);
    },
    analysed: async (client) => {
      await fill(client);
      await client`analyze queue_jobs`;
    },
    'analysed, of few large rows': async (client) => {
      await fill(client, 'q', LARGE);
      await client`analyze queue_jobs`;
    },
    'analysed, of another queue': async (client) => {
      await fill(client, 'other');
      await client`analyze queue_jobs`;
    },
  };
  return Object.entries(states).map(([name, make]) => [
    name,
    async (client) => {
      await client`truncate queue_jobs`;
      await make(client);
    },
  ]);
}
