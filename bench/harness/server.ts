import {
  type PostgresServer,
  type PostgresSettings,
  startPostgres,
} from '../../test/support/embedded-postgres.ts';

/** As safe as a server is by default: what a commit costs is a part of what a queue costs. */
export const SERVER_SETTINGS = {
  fsync: true,
  synchronous_commit: true,
  full_page_writes: true,
  shared_buffers: '512MB',
  max_wal_size: '4GB',
  // Checkpoints come between measurements (see `Site`), where they disturb nobody.
  checkpoint_timeout: '1h',
  max_connections: 600,
} as const;

/** The settings in words, for below a table. */
export const SERVER_TEXT = `PostgreSQL 18, ${Object.entries(SERVER_SETTINGS)
  .map(([name, value]) => `${name} = ${value === true ? 'on' : value}`)
  .join(', ')}; everything else as it comes`;

/** The one server that all systems share. */
export function startServer(more: PostgresSettings = {}): Promise<PostgresServer> {
  return startPostgres({ version: '18', settings: { ...SERVER_SETTINGS, ...more } });
}
